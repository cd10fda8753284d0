"""Boxes of rare classes' images, put into images of all classes."""

from __future__ import annotations

import torch
from torch import Tensor

from ..core import checks, register
from .cutmix import CutMix


def weighed_partner(weights: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """weights (N,) -> (N,) places in the batch, each drawn with replacement, i with chance weights_i / sum."""
    # of exponential clocks with these rates the first to ring; no cumulated sum, which a GPU rounds differently by run
    n = len(weights)
    clocks = weights.new_empty((n, n)).exponential_(generator=generator)
    return (clocks / weights).argmin(1) if n else weights.new_empty(0, dtype=torch.int64)


@register(
    "cmo",
    kind="mix",
    year=2022,
    arxiv="2112.00412",
    space={
        "alpha": {"values": (0.5, 1.0, 2.0), "scale": "log"},
        "power": {"values": (0.5, 1.0, 1.5), "low": 0.0},
    },
    examples=({}, {"share": 1.0, "power": 0.5}),
    later=("stop",),
)
class ContextRichOversampling(CutMix):
    r"""CutMix whose boxes come from rare classes more often: their images appear before many backgrounds.

    .. math:: \tilde x = M \odot x + (1 - M) \odot x_j, \qquad
        \tilde\ell = \lambda \, \ell(y) + (1 - \lambda) \, \ell(y_j), \qquad P(j) \propto n_{y_j}^{-r}

    with M and :math:`\lambda` as in `cutmix`.

    Args:
        class_counts: training images of each class, n_c.
        alpha: of the Beta distribution; 1 as in the paper.
        share: of the images that are given a box; 0.5 as in the released code.
        power: r; 1 as in the paper: each class is drawn about equally often. With 0 each image is.
        stop: the share of training after which all images stay whole, as in `cutmix`.

    Differs from the paper: j is drawn from the batch, where the paper draws it from all training images, so that the
    rare images of a batch appear in many of its others; every sample has its own box; and the released code leaves out
    the first and the last three epochs.

    Example:
        >>> mixed = ContextRichOversampling([90, 10])(torch.randn(100, 3, 8, 8), torch.tensor([0] * 90 + [1] * 10))
        >>> bool(mixed.target[mixed.partner].float().mean() > 0.25)  # a tenth of the batch, about half of the boxes
        True

    Reference: Park, Hong, Heo, Yun, Choi. The Majority Can Help the Minority: Context-rich Minority Oversampling for
    Long-tailed Classification. CVPR 2022.
    """

    weights: Tensor

    def __init__(
        self, class_counts: checks.Counts, alpha: float = 1.0, share: float = 0.5, power: float = 1.0, stop: float = 1.0
    ) -> None:
        super().__init__(alpha, share, stop)
        counts = checks.counts(class_counts)
        self.power = checks.at_least("power", power, 0)
        # relative to the largest class, so that no power of a large count underflows; an empty one is never drawn
        weights = ((counts.max() / counts.clamp_min(1)) ** self.power).float()
        self.register_buffer("class_counts", counts.long(), persistent=False)
        self.register_buffer("weights", weights, persistent=False)

    def partner(self, target: Tensor) -> Tensor:
        return weighed_partner(self.weights[target.long()], self.generator)
