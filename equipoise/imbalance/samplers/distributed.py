"""Weighted sampling for one's own loop, on one process or many."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from ...core import checks
from .._base import Sampler, home
from .target_ratio import ratio_shares


class DistributedWeightedSampler(Sampler):
    """Draws samples with replacement, each as often as its weight says, from one order that all processes share.

    PyTorch's `WeightedRandomSampler` gives every process the same indices or unrelated ones; here each process
    takes every `num_replicas`-th of one common order, which is the same however many there are.

    Args:
        weights: one for each sample, 0 or more, of any sum.
        num_samples: how many all processes together draw in an epoch; as many as there are weights unless told.
        seed: of the order; the same on every process.
        rank: which of the `num_replicas` processes this is; both as the process group says unless told.

    Example:
        >>> ranks = [DistributedWeightedSampler([0.0, 1.0, 3.0], 8, rank=r, num_replicas=2) for r in (0, 1)]
        >>> list(ranks[0]), list(ranks[1])
        ([2, 2, 2, 1], [2, 2, 2, 2])
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int | None = None,
        *,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        self.weights = torch.as_tensor(weights, dtype=torch.float64, device=home(weights))
        if self.weights.dim() != 1 or not bool(torch.isfinite(self.weights).all() & (self.weights >= 0).all()):
            raise ValueError("weights must be one finite number for each sample, 0 or more")
        if not bool(self.weights.sum() > 0):
            raise ValueError("weights are all 0, so that no sample could be drawn")
        self._drawn = len(self.weights) if num_samples is None else checks.whole("num_samples", num_samples, 1)
        # the weights say all: to this sampler every sample is of one class
        super().__init__(torch.zeros_like(self.weights), seed=seed, rank=rank, num_replicas=num_replicas)

    @classmethod
    def to_ratio(cls, labels: Any, ratio: float = 1.0, num_samples: int | None = None, **options: Any) -> Self:
        """Draws the largest class `ratio` times as often as the smallest: 1 is balance, the ratio of the data leaves
        it as it is, and between the two every class comes nearer to the others (see `TargetRatioSampler`).

        Args:
            labels: the class of each sample.
            ratio: 1 or more.
            num_samples: how many are drawn, as in the constructor.
            options: `seed`, `rank` and `num_replicas`.
        """
        classes = torch.as_tensor(labels, device=home(labels))
        _, number, counts = classes.unique(return_inverse=True, return_counts=True)
        counts = counts.double()
        shares = ratio_shares(counts, checks.at_least("ratio", ratio, 1))
        return cls((shares / counts)[number], num_samples, **options)

    @property
    def epoch_length(self) -> int:
        return self._drawn

    def order(self, generator: torch.Generator, progress: float = 0.0) -> Tensor:
        device = generator.device
        edges = self.weights.to(device).cumsum(0)
        drawn = torch.rand(self._drawn, dtype=torch.float64, generator=generator, device=device)
        # right=True: a weight of 0 has no width, so that it is never drawn
        return torch.searchsorted(edges / edges[-1], drawn, right=True)
