"""Sigmoid cross-entropy."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ..core import full_precision, register
from ._base import Loss


def sigmoid_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Sigmoid cross-entropy of each sample: logits (N, C), target (N,) -> (N,). See `SigmoidLoss`."""
    logits = full_precision(logits)
    # above the default threshold of 20 softplus is replaced by its argument, which shows once z_y is taken away
    everywhere = F.softplus(logits, threshold=50).sum(1)
    return everywhere + F.nll_loss(logits, target, reduction="none")  # nll_loss picks -z_y in one kernel


@register("sigmoid", kind="loss", year=2021, arxiv="2010.16402", companions={"head": "linear(prior='classes')"})
class SigmoidLoss(Loss):
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

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        return sigmoid_loss(logits, target)
