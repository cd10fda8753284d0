"""Weighted sampling for one's own loop, on one process or many."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core import checks
from .._base import Sampler, home


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

    @property
    def epoch_length(self) -> int:
        return self._drawn

    def order(self, generator: torch.Generator, progress: float = 0.0) -> Tensor:
        device = generator.device
        edges = self.weights.to(device).cumsum(0)
        drawn = torch.rand(self._drawn, dtype=torch.float64, generator=generator, device=device)
        # right=True: a weight of 0 has no width, so that it is never drawn
        return torch.searchsorted(edges / edges[-1], drawn, right=True)
