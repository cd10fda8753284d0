"""Softmax cross-entropy."""

from __future__ import annotations

from torch import Tensor

from ..core import register
from ..native.losses import softmax_loss
from ._base import FusedLoss
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["CrossEntropyLoss", "cross_entropy_loss"]


@in_one_call(softmax_loss)
def cross_entropy_loss(logits: Tensor, target: Tensor, *, reduction: str = "none") -> Tensor:
    """Cross-entropy of each sample: logits (N, C), target (N,) -> (N,). See `CrossEntropyLoss`."""
    return nll(logits, target, reduction)


@register("cross_entropy", kind="loss")
class CrossEntropyLoss(FusedLoss):
    r"""Negative log-probability of the label under a softmax: the baseline of all other losses.

    .. math:: \ell(z, y) = -\log p_y, \qquad p = \mathrm{softmax}(z)

    Args:
        reduction: "mean", "sum" or "none" over the batch.

    Differs from the paper: nothing known.

    Example:
        >>> CrossEntropyLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.1269)

    Reference: Bridle. Probabilistic Interpretation of Feedforward Classification Network Outputs, with
    Relationships to Statistical Pattern Recognition. Neurocomputing 1990.
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return cross_entropy_loss(logits, target, reduction=reduction)
