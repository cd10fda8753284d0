"""Sampling to a ratio between that of the data and balance."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core import checks, register
from ._visit import QuotaSampler


def ratio_shares(counts: Tensor, ratio: float) -> Tensor:
    """How often each class is to come (C,), up to a factor, for class sizes (C,) above 0. See `TargetRatioSampler`.

    >>> [round(share, 3) for share in ratio_shares(torch.tensor([100.0, 10.0, 1.0]), 4).tolist()]
    [4.0, 2.0, 1.0]
    """
    own = counts.max() / counts.min()
    q = torch.where(own > 1, own.clamp(max=ratio).log() / own.log(), 1.0)
    return (counts / counts.min()) ** q


@register(
    "target_ratio",
    kind="sampler",
    year=2020,
    arxiv="1910.09217",
    space={"ratio": {"values": (2.0, 5.0, 20.0), "scale": "log", "low": 1.0}},
)
class TargetRatioSampler(QuotaSampler):
    r"""Visits the largest class `ratio` times as often as the smallest, and those between accordingly.

    .. math:: p_c = n_c^q / \textstyle\sum_k n_k^q, \qquad q = \log r \,/ \log \frac{\max_k n_k}{\min_k n_k}

    A ratio of 1 is class-balanced sampling; the ratio of the data, or a larger one, is uniform sampling.

    Args:
        labels: the class of each sample. A class that does not occur is left out.
        ratio: r, places of the largest class over places of the smallest; 1 or more.
        start: share of training after which it acts; until then sampling is uniform.
        epochs: how many there are; in one's own loop `start` needs it, or ``set_epoch(epoch, progress=…)``.
        seed: of the order. With `rank` and `num_replicas` for use in one's own loop.

    Differs from the paper: it has the family :math:`n_c^q` and tries q = 0, 1/2 and 1; here q follows from the ratio
    that is asked for. Each class has its share of the places of every epoch, to within one; within a class no sample
    comes twice before all have come.

    Example:
        >>> labels = torch.tensor([0] * 64 + [1] * 16 + [2] * 4)  # 16 to 1
        >>> labels[list(TargetRatioSampler(labels, ratio=4.0))].bincount()
        tensor([48, 24, 12])

    Reference: Kang, Xie, Rohrbach, Yan, Gordo, Feng, Kalantidis. Decoupling Representation and Classifier for
    Long-Tailed Recognition. ICLR 2020.
    """

    def __init__(
        self,
        labels: Any,
        ratio: float = 5.0,
        start: float = 0.0,
        *,
        epochs: int | None = None,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        super().__init__(labels, start, epochs=epochs, seed=seed, rank=rank, num_replicas=num_replicas)
        self.ratio = checks.at_least("ratio", ratio, 1)

    def shares(self, counts: Tensor, progress: float) -> Tensor:
        return ratio_shares(counts, self.ratio)
