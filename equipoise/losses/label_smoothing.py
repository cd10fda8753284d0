"""Label smoothing."""

from __future__ import annotations

from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss, reduce
from ._fused import in_one_call
from ._softmax import log_softmax, of_labels

__all__ = ["LabelSmoothingLoss", "label_smoothing_loss"]


@in_one_call(softmax_loss, alpha="alpha")
def label_smoothing_loss(logits: Tensor, target: Tensor, alpha: float = 0.1, *, reduction: str = "none") -> Tensor:
    """Label smoothing of each sample: logits (N, C), target (N,) -> (N,). See `LabelSmoothingLoss`."""
    log_p = log_softmax(logits)
    return reduce(of_labels(log_p, target) - alpha / (1 - alpha) * log_p.mean(1), reduction)


@register(
    "label_smoothing",
    kind="loss",
    year=2016,
    arxiv="1512.00567",
    neutral={"alpha": 0.0},
    space={"alpha": {"values": (0.05, 0.1, 0.2), "scale": "log", "high": 0.9}},
    examples=({}, {"alpha": 0.0}, {"alpha": 0.9}),
)
class LabelSmoothingLoss(FusedLoss):
    r"""Cross-entropy with labels that give each of the C classes a share of the probability.

    .. math:: \ell(z, y) = -\frac{1}{1 - \alpha} \sum_k t_k \log p_k, \qquad t_k = (1 - \alpha) [k = y] + \alpha / C,
        \quad p = \mathrm{softmax}(z)

    Args:
        alpha: probability taken from the label and spread evenly over all classes; 0 gives cross-entropy. 0.1 is
            what Kornblith et al. selected on ImageNet (0.04 on CIFAR-10, 0.18 on CIFAR-100).

    Differs from the paper: the factor 1 / (1 - alpha) is Kornblith et al.'s, not Szegedy et al.'s; it keeps the
    gradient towards the label at full strength, so that one learning rate suits all alpha. Their released code counts
    an unused background class among the C.

    Example:
        >>> LabelSmoothingLoss(alpha=0.5)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(1.2539)

    Reference: Szegedy, Vanhoucke, Ioffe, Shlens, Wojna. Rethinking the Inception Architecture for Computer Vision.
    CVPR 2016. Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features?
    NeurIPS 2021.
    """

    def __init__(self, alpha: float = 0.1, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.alpha = checks.between("alpha", alpha, 0, 1)
        checks.above("1 - alpha", 1 - alpha, 0)

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return label_smoothing_loss(logits, target, self.alpha, reduction=reduction)
