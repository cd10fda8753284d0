"""What weightings, samplers and post-hoc corrections share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import torch
from torch import Tensor, nn

from .. import checks
from ..core import Output, signature_repr


class Weighting(nn.Module):
    """How much each sample counts. A subclass writes `weights`; `start` defers it to a part of training.

    `start` is the share of training after which the weights act (0.8: the last fifth, as deferred
    re-weighting does); until then every sample counts 1.
    """

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.start = checks.between("start", start, 0, 1)

    def weights(self, target: Tensor, out: Output | None) -> Tensor:
        """target (N,) -> (N,). `out` is what the network gave for these samples."""
        raise NotImplementedError

    def forward(self, target: Tensor, out: Output | None = None, progress: Tensor | float = 1.0) -> Tensor:
        weights = self.weights(target, out)
        if self.start == 0:
            return weights
        # on the device, not with an `if`: progress is a tensor there and reading it would wait for the GPU
        active = torch.as_tensor(progress, device=weights.device) >= self.start
        return torch.where(active, weights, torch.ones_like(weights))

    def extra_repr(self) -> str:
        return signature_repr(self)


class Sampler(torch.utils.data.Sampler[int]):
    """Which samples an epoch visits, in order. A subclass writes `epoch`.

    In one's own loop it is a PyTorch sampler: ``DataLoader(data, sampler=ClassBalancedSampler(labels))``; call
    `set_epoch` before each epoch. Split over processes, each takes every `num_replicas`-th index of the one
    common order, so the order does not depend on how many there are.
    """

    def __init__(self, labels: Any, *, seed: int = 0, rank: int = 0, num_replicas: int = 1) -> None:
        self.labels = torch.as_tensor(labels).long()
        if self.labels.dim() != 1 or not len(self.labels):
            raise ValueError(f"labels must be one class for each sample, not of shape {tuple(self.labels.shape)}")
        self.seed = seed
        self.num_replicas = checks.whole("num_replicas", num_replicas, 1)
        self.rank = checks.whole("rank", rank)
        if rank >= num_replicas:
            raise ValueError(f"rank must be below num_replicas ({num_replicas}), not {rank}")
        self.set_epoch(0)

    def epoch(self, generator: torch.Generator, progress: float = 0.0) -> Tensor:
        """The indices of one epoch, on the generator's device; `progress` is the share of training done."""
        raise NotImplementedError

    def set_epoch(self, epoch: int, progress: float = 0.0) -> None:
        """Tell which epoch comes next; without it every epoch has the same order."""
        self._epoch, self._progress = epoch, progress

    def __len__(self) -> int:
        return -(-self.epoch_length // self.num_replicas)

    @property
    def epoch_length(self) -> int:
        """How many samples all processes together visit in an epoch."""
        return len(self.labels)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self._epoch)
        order = self.epoch(generator, self._progress)
        # every process needs as many samples as the others: the order starts over where it is short of that
        wrapped = torch.arange(self.rank, len(self) * self.num_replicas, self.num_replicas) % len(order)
        return iter(order[wrapped].tolist())


class Posthoc:
    """A correction after training: fitted on validation outputs, applied to outputs."""

    def fit(self, out: Output, target: Tensor) -> Self:
        """Choose what is to be chosen on held-out data. Methods with nothing to choose keep this one."""
        return self

    def __call__(self, out: Output) -> Tensor:
        """Corrected logits (N, C)."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({signature_repr(self)})"
