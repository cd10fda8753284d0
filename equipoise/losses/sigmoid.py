"""Sigmoid cross-entropy."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ..core import register
from ..native import losses as kernels
from ._base import FusedLoss, label_rows
from ._fused import in_one_call

__all__ = ["SigmoidLoss", "sigmoid_loss"]


@in_one_call(kernels.sigmoid_loss)
def sigmoid_loss(logits: Tensor, target: Tensor, *, reduction: str = "none") -> Tensor:
    """Sigmoid cross-entropy of each sample: logits (N, C), target (N,) -> (N,). See `SigmoidLoss`."""
    one_hot = label_rows(logits, target, 1, 0)
    if reduction == "none":
        return F.binary_cross_entropy_with_logits(logits, one_hot, reduction="none").sum(1)
    total = F.binary_cross_entropy_with_logits(logits, one_hot, reduction="sum")
    return total / target.shape[0] if reduction == "mean" else total


@register("sigmoid", kind="loss", year=2021, arxiv="2010.16402", companions={"head": "linear(prior='classes')"})
class SigmoidLoss(FusedLoss):
    r"""One yes-or-no cross-entropy for each class, summed over classes.

    .. math:: \ell(z, y) = \sum_k \log(1 + e^{z_k}) - z_y

    Args:
        reduction: "mean", "sum" or "none" over the batch.

    Differs from the paper: nothing known. The head's bias should start at -log C, as the paper's does; the released
    code shifts the logits by -log C instead, which is the same at the start but not under weight decay of the bias.

    Example:
        >>> SigmoidLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.8201)

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features?
    NeurIPS 2021.
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def link(self, logits: Tensor) -> Tensor:
        return F.logsigmoid(logits)

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return sigmoid_loss(logits, target, reduction=reduction)
