"""How samplers that think in classes turn a sequence of classes into one of samples."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core import checks
from .._base import Sampler


class ClassSampler(Sampler):
    """Chooses classes first, then samples: within a class none comes twice before all have come.

    A subclass writes `place_classes`, the class of each place of the epoch. Classes are numbered here by the labels
    that occur, so that a class without samples is never chosen.
    """

    def __init__(self, labels: Any, *, seed: int = 0, rank: int | None = None, num_replicas: int | None = None) -> None:
        super().__init__(labels, seed=seed, rank=rank, num_replicas=num_replicas)
        _, self._class, self._counts = self.labels.unique(return_inverse=True, return_counts=True)

    def place_classes(self, generator: torch.Generator, progress: float) -> Tensor:
        """The class of each place of the epoch, in visiting order."""
        raise NotImplementedError

    def order(self, generator: torch.Generator, progress: float = 0.0) -> Tensor:
        place_class = self.place_classes(generator, progress)
        sample_class, counts = self._class.to(generator.device), self._counts.to(generator.device)
        shuffled = torch.randperm(len(sample_class), generator=generator, device=generator.device)
        samples = shuffled[sample_class[shuffled].argsort(stable=True)]  # class by class, in random order within
        first = counts.cumsum(0) - counts
        turn = occurrence(place_class)
        return samples[first[place_class] + turn % counts[place_class]]


class QuotaSampler(ClassSampler):
    """Gives each class a share of the epoch, to within one sample. A subclass writes `shares`.

    Until `start`, a share of training, it samples uniformly. How far training is `set_epoch` tells, or follows from the
    number of `epochs`, since Lightning and Accelerate tell the epoch alone.
    """

    def __init__(
        self,
        labels: Any,
        start: float = 0.0,
        *,
        epochs: int | None = None,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        super().__init__(labels, seed=seed, rank=rank, num_replicas=num_replicas)
        self.start = checks.between("start", start, 0, 1)
        self.epochs = None if epochs is None else checks.whole("epochs", epochs, 1)

    @property
    def follows_training(self) -> bool:
        """Whether the shares change in the course of training."""
        return self.start > 0

    def set_epoch(self, epoch: int, progress: float | None = None) -> None:
        """Tell which epoch comes next, and how far training is if that is not epoch / epochs."""
        super().set_epoch(epoch, self._progress_at(epoch) if progress is None else progress)

    def _progress_at(self, epoch: int) -> float:
        if self.epochs is not None:
            return min(epoch / self.epochs, 1.0)
        if epoch and self.follows_training:
            raise ValueError(
                f"{type(self).__name__} changes in the course of training and must know how far that is: make it with "
                f"epochs=…, or tell it with set_epoch({epoch}, progress=…)"
            )
        return 0.0

    def shares(self, counts: Tensor, progress: float) -> Tensor:
        """Samples of each class (C,) in float64 -> its share of the epoch (C,), up to a factor."""
        raise NotImplementedError

    def place_classes(self, generator: torch.Generator, progress: float) -> Tensor:
        counts, n = self._counts.to(generator.device), len(self.labels)
        if progress >= self.start:
            counts = quotas(self.shares(counts.double(), progress), n, generator)
        numbers = torch.arange(len(counts), device=generator.device)
        in_order = numbers.repeat_interleave(counts, output_size=n)
        return in_order[torch.randperm(n, generator=generator, device=generator.device)]


def quotas(shares: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Whole numbers (C,) that sum to n and are n · shares rounded up or down, at random, right on average."""
    # rounded, so that what should be whole is: 2.9999999999 would lose a sample
    edges = (shares.cumsum(0) * (n / shares.sum())).round(decimals=6)
    # of float32's 24 bits, so that n + offset stays below n + 1 in float64
    offset = torch.rand((), dtype=torch.float32, generator=generator, device=generator.device)
    return (edges + offset).floor().long().diff(prepend=edges.new_zeros(1).long())


def occurrence(classes: Tensor) -> Tensor:
    """How many earlier entries have the same class: (0, 1, 0, 0) -> (0, 0, 1, 2)."""
    by_class = classes.argsort(stable=True)
    ordered = classes[by_class]
    turn = torch.arange(len(classes), device=classes.device) - torch.searchsorted(ordered, ordered)
    return torch.empty_like(turn).scatter_(0, by_class, turn)
