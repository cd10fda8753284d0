"""Sigmoid cross-entropy."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor

from ..core import checks, full_precision, register
from ..native import losses as kernels
from ._base import FusedLoss, label_rows
from ._fused import in_one_call
from .logit_norm import normalized_logits

__all__ = ["SigmoidLoss", "sigmoid_loss"]


@in_one_call(kernels.sigmoid_loss)
def sigmoid_loss(logits: Tensor, target: Tensor, *, reduction: str = "none") -> Tensor:
    """Sigmoid cross-entropy of each sample: logits (N, C), target (N,) -> (N,). See `SigmoidLoss`."""
    one_hot = label_rows(logits, target, 1, 0)
    if reduction == "none":
        return F.binary_cross_entropy_with_logits(logits, one_hot, reduction="none").sum(1)
    total = F.binary_cross_entropy_with_logits(logits, one_hot, reduction="sum")
    return total / target.shape[0] if reduction == "mean" else total


@register(
    "sigmoid",
    kind="loss",
    year=2021,
    arxiv="2010.16402",
    companions={"head": "linear(prior='classes')"},
    examples=({}, {"tau": 0.04}, {"tau": 1.0}),
    later=("tau",),
)
class SigmoidLoss(FusedLoss):
    r"""One yes-or-no cross-entropy for each class, summed over classes.

    .. math:: \ell(z, y) = \sum_k \log(1 + e^{z_k}) - z_y

    With `tau` the logits are normalized first, and start at the prior of one class in C:

    .. math:: z_k \leftarrow \frac{z_k}{\tau \lVert z \rVert} - \log C

    Args:
        tau: temperature of the normalized logits; None, as in the paper's main results, does not normalize them. The
            paper's table of combined objectives has 0.02 to 0.06 here. Choose ``head = "linear"`` then: a bias that
            starts at -log C would be normalized away.
        reduction: "mean", "sum" or "none" over the batch.

    Differs from the paper: nothing known without `tau`. The head's bias should start at -log C, as the paper's does;
    the released code shifts the logits by -log C instead, which is the same at the start but not under weight decay of
    the bias. With `tau` the paper does not say where the prior is; here it is that shift, after the normalization. For
    sigmoids of cosines choose ``head = "cosine(prior='classes')"``.

    Example:
        >>> SigmoidLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.8201)

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features?
    NeurIPS 2021.
    """

    def __init__(self, tau: float | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.tau = None if tau is None else checks.above("tau", tau, 0)

    def _normalized(self, logits: Tensor) -> Tensor:
        if self.tau is None:
            return logits
        return normalized_logits(full_precision(logits), self.tau) - math.log(logits.shape[1])

    def link(self, logits: Tensor) -> Tensor:
        return F.logsigmoid(self._normalized(logits))

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return sigmoid_loss(self._normalized(logits), target, reduction=reduction)
