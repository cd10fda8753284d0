"""Class-dependent temperatures."""

from __future__ import annotations

from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["CDTLoss", "cdt_loss", "cdt_temperatures"]


def cdt_temperatures(class_counts: Tensor, gamma: float = 0.2) -> Tensor:
    """Temperature of each class, (n_max / n)^gamma: (C,) -> (C,) in float64."""
    counts = class_counts.clamp_min(1).double()
    return (counts.max() / counts) ** gamma


@in_one_call(softmax_loss, scale="coolness")
def cdt_loss(logits: Tensor, target: Tensor, *, coolness: Tensor, reduction: str = "none") -> Tensor:
    """CDT of each sample: logits (N, C), target (N,), 1 / temperatures (C,) -> (N,). See `CDTLoss`."""
    return nll(coolness * logits, target, reduction)


@register(
    "cdt",
    kind="loss",
    year=2020,
    arxiv="2001.01385",
    neutral={"gamma": 0.0},
    space={"gamma": {"values": (0.1, 0.2, 0.3), "low": 0.0}},
    examples=({}, {"gamma": 0.0}, {"gamma": 1.0}),
)
class CDTLoss(FusedLoss):
    r"""Cross-entropy of logits divided by a temperature, higher for rare classes, which must then grow larger logits.

    .. math:: \ell(z, y) = -\log \frac{e^{z_y / a_y}}{\sum_k e^{z_k / a_k}}, \qquad a_c = (n_{\max} / n_c)^\gamma

    Predictions are made from the bare logits. It imitates in training the way features of rare classes drift
    between training and test data.

    Args:
        class_counts: training images of each class (C,). A class with 0 has the temperature of a class with 1.
        gamma: how much temperatures differ; 0 gives cross-entropy. The paper searches 0 to 0.4 on CIFAR-10, to 0.2
            on CIFAR-100 and Tiny ImageNet, to 0.1 on iNaturalist; 0.2 is the default of the BagofTricks code.

    Differs from the paper: nothing known (no code of the authors was found to compare with).

    Example:
        >>> CDTLoss([100, 1], gamma=0.5)(torch.tensor([[0.0, 10.0]]), torch.tensor([1]))
        tensor(0.3133)

    Reference: Ye, Chen, Zhan, Chao. Identifying and Compensating for Feature Deviation in Imbalanced Deep Learning.
    arXiv 2020.
    """

    class_counts: Tensor

    def __init__(self, class_counts: checks.Counts, gamma: float = 0.2, *, reduction: str = "mean") -> None:
        super().__init__(reduction, class_counts)
        self.gamma = checks.at_least("gamma", gamma, 0)

    @property
    def temperatures(self) -> Tensor:
        """Of each class (C,), in float64."""
        return cdt_temperatures(self.class_counts, self.gamma)

    def derived(self, counts: Tensor) -> Tensor:
        return cdt_temperatures(counts, self.gamma).reciprocal()

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return cdt_loss(logits, target, coolness=self.of_classes(logits), reduction=reduction)
