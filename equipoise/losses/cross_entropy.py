"""Softmax cross-entropy."""

from __future__ import annotations

from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["CrossEntropyLoss", "cross_entropy_loss"]


@in_one_call(softmax_loss)
def cross_entropy_loss(logits: Tensor, target: Tensor, *, reduction: str = "none") -> Tensor:
    """Cross-entropy of each sample: logits (N, C), target (N,) -> (N,). See `CrossEntropyLoss`."""
    return nll(logits, target, reduction)


@register(
    "cross_entropy", kind="loss", examples=({}, {"loss_scale": 0.01}, {"loss_scale": 10.0}), later=("loss_scale",)
)
class CrossEntropyLoss(FusedLoss):
    r"""Negative log-probability of the label under a softmax: the baseline of all other losses.

    .. math:: \ell(z, y) = -s \log p_y, \qquad p = \mathrm{softmax}(z)

    Args:
        loss_scale: s, a factor on the whole, 1 in almost all papers. Kornblith et al. multiply the loss of their cosine
            softmax of temperature tau by tau when they compare temperatures, because low ones are unstable without it:
            ``head = "cosine(tau=0.01)"`` with ``loss = "cross_entropy(loss_scale=0.01)"``.
        reduction: "mean", "sum" or "none" over the batch.

    Differs from the paper: nothing known.

    Example:
        >>> CrossEntropyLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.1269)

    Reference: Bridle. Probabilistic Interpretation of Feedforward Classification Network Outputs, with
    Relationships to Statistical Pattern Recognition. Neurocomputing 1990. Kornblith, Chen, Lee, Norouzi. Why Do Better
    Loss Functions Lead to Less Transferable Features? NeurIPS 2021 (the factor).
    """

    def __init__(self, loss_scale: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.loss_scale = checks.above("loss_scale", loss_scale, 0)

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        value = cross_entropy_loss(logits, target, reduction=reduction)
        return value if self.loss_scale == 1 else self.loss_scale * value
