"""Class weights by the effective number of samples."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...core import checks, register
from ._class_weights import ClassWeighting, sum_to_num_classes, weight_type


def effective_number(n: Tensor, beta: float) -> Tensor:
    """E_n = (1 - β^n) / (1 - β) of class counts (C,), in float64; n in the limit of β = 1.

    >>> effective_number(torch.tensor([1, 2]), 0.5)
    tensor([1.0000, 1.5000], dtype=torch.float64)
    """
    n = n.double()
    return n**beta if beta in (0, 1) else -torch.expm1(n * math.log(beta)) / (1 - beta)


def effective_number_weights(class_counts: checks.Counts, beta: float = 0.9999) -> Tensor:
    """Class weights (C,) that sum to C. See `EffectiveNumber`."""
    return _weights(checks.counts(class_counts), checks.between("beta", beta, 0, 1)).to(weight_type())


def _weights(n: Tensor, beta: float) -> Tensor:
    if beta == 0:
        inverse = torch.ones_like(n)
    elif beta == 1:  # the limit of E_n is n
        inverse = 1 / n
    else:
        # 1 - beta**n would cancel for beta near 1; the factor 1 - beta drops out in the normalisation
        inverse = -1 / torch.expm1(n * math.log(beta))
    return sum_to_num_classes(inverse, n)


@register(
    "effective_number",
    kind="weighting",
    year=2019,
    arxiv="1901.05555",
    neutral={"beta": 0.0},
    space={"beta": {"values": (0.9, 0.99, 0.999, 0.9999), "scale": "towards_one", "low": 0.0}},
    examples=({}, {"beta": 0.9, "start": 0.5}),
)
class EffectiveNumber(ClassWeighting):
    r"""Weighs a sample by one over the effective number of samples of its class.

    .. math:: w_c = \frac{C \, E_{n_c}^{-1}}{\sum_k E_{n_k}^{-1}}, \qquad E_n = \frac{1 - \beta^n}{1 - \beta}

    Args:
        class_counts: training images of each class, n_c.
        beta: 0 weighs all classes alike, 1 by inverse frequency. The paper tries 0.9, 0.99, 0.999 and 0.9999;
            0.9999 is its best on CIFAR-10 and what deferred re-weighting (LDAM-DRW, MFW) uses.
        start: share of training after which the weights act; deferred re-weighting is 0.8.
        normalize: "classes" divides the batch's weighed loss by its number of samples, as the paper does; "batch" by
            the sum of its weights, as deferred re-weighting (LDAM-DRW) and all that borrow it do.

    Differs from the paper: a class without images gets weight 0, where the formula divides by zero; the weights
    of the others then sum to C.

    Example:
        >>> effective_number_weights([1000, 100, 10], beta=0.99)
        tensor([0.2301, 0.3630, 2.4068])
        >>> EffectiveNumber([1000, 100, 10], beta=0.99)(torch.tensor([2, 0]))
        tensor([2.4068, 0.2301])

    Reference: Cui, Jia, Lin, Song, Belongie. Class-Balanced Loss Based on Effective Number of Samples. CVPR 2019.
    """

    def __init__(
        self, class_counts: checks.Counts, beta: float = 0.9999, start: float = 0.0, normalize: str = "classes"
    ) -> None:
        super().__init__(class_counts, start, normalize)
        self.beta = checks.between("beta", beta, 0, 1)

    def derived(self, counts: Tensor) -> Tensor:
        return _weights(counts, self.beta)
