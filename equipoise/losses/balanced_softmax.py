"""Balanced softmax."""

from __future__ import annotations

from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["BalancedSoftmaxLoss", "balanced_softmax_loss"]


@in_one_call(softmax_loss, shift="log_counts")
def balanced_softmax_loss(logits: Tensor, target: Tensor, *, log_counts: Tensor, reduction: str = "none") -> Tensor:
    """Balanced softmax: logits (N, C), target (N,), log n (C,) -> (N,). See `BalancedSoftmaxLoss`."""
    return nll(logits + log_counts, target, reduction)


@register("balanced_softmax", kind="loss", year=2020, arxiv="2007.10740")
class BalancedSoftmaxLoss(FusedLoss):
    r"""Cross-entropy whose softmax counts each class as often as it occurs, so that the bare logits do not have to.

    .. math:: \ell(z, y) = -\log \frac{n_y e^{z_y}}{\sum_k n_k e^{z_k}}

    Predictions are made from the bare logits, which then suit classes that are equally frequent.

    Args:
        class_counts: training images of each class (C,). A class with 0 is left out of the sum, so other samples
            do not move its logit; a sample labelled with it has an infinite loss.

    Differs from the paper: nothing known. The paper's meta-learned sampler is not part of the loss.

    Example:
        >>> BalancedSoftmaxLoss([90, 10])(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(2.3026)

    Reference: Ren, Yu, Sheng, Ma, Zhao, Yi, Li. Balanced Meta-Softmax for Long-Tailed Visual Recognition. NeurIPS 2020.
    """

    class_counts: Tensor

    def __init__(self, class_counts: checks.Counts, *, reduction: str = "mean") -> None:
        super().__init__(reduction, class_counts)

    def derived(self, counts: Tensor) -> Tensor:
        return counts.log()

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return balanced_softmax_loss(logits, target, log_counts=self.of_classes(logits), reduction=reduction)
