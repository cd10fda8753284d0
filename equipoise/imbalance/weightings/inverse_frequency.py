"""Class weights by inverse frequency."""

from __future__ import annotations

from torch import Tensor

from ...core import checks, register
from ._class_weights import ClassWeighting, sum_to_num_classes, weight_type


def inverse_frequency_weights(class_counts: checks.Counts, power: float = 1.0) -> Tensor:
    """Class weights (C,) that sum to C. See `InverseFrequency`."""
    return _weights(checks.counts(class_counts), checks.at_least("power", power, 0)).to(weight_type())


def _weights(n: Tensor, power: float) -> Tensor:
    # relative to the largest class, so that no power of a large count underflows
    return sum_to_num_classes((n.max() / n) ** power, n)


@register(
    "inverse_frequency",
    kind="weighting",
    year=2016,
    neutral={"power": 0.0},
    space={"power": {"values": (0.5, 1.0, 1.5), "low": 0.0}},
    examples=({}, {"power": 0.5}),
)
class InverseFrequency(ClassWeighting):
    r"""Weighs a sample by one over a power of the number of images of its class.

    .. math:: w_c = \frac{C \, n_c^{-p}}{\sum_k n_k^{-p}}

    Args:
        class_counts: training images of each class, n_c.
        power: p; 1 is inverse frequency, 0.5 its smoothed form (Mahajan et al. 2018), 0 weighs all classes alike.
        start: share of training after which the weights act.
        normalize: "classes" divides the batch's weighed loss by its number of samples, "batch" by the sum of its
            weights.

    Differs from the paper: the weights sum to C, so that the size of the loss is comparable between methods. A class
    without images gets weight 0, where the formula divides by zero; the weights of the others then sum to C.

    Example:
        >>> inverse_frequency_weights([60, 30, 10])
        tensor([0.3333, 0.6667, 2.0000])

    Reference: Huang, Li, Loy, Tang. Learning Deep Representation for Imbalanced Classification. CVPR 2016.
    """

    def __init__(
        self, class_counts: checks.Counts, power: float = 1.0, start: float = 0.0, normalize: str = "classes"
    ) -> None:
        super().__init__(class_counts, start, normalize)
        self.power = checks.at_least("power", power, 0)

    def derived(self, counts: Tensor) -> Tensor:
        return _weights(counts, self.power)
