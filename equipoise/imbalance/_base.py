"""What weightings, samplers and post-hoc corrections share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.data import DistributedSampler

from ..core import Output, checks, signature_repr
from ..core.class_counts import KnowsCounts
from .samplers._processes import accelerate_splits, processes


class Weighting(KnowsCounts):
    """How much each sample counts. A subclass writes `weights`; `start` defers it to a part of training.

    `start` is the share of training after which the weights act (0.8: the last fifth, as deferred
    re-weighting does); until then every sample counts 1.

    `normalize` says what the weighed loss of a batch is divided by: its number of samples, the weights having been
    normalised once over the classes, or the sum of its weights ("batch"), which keeps the size of the loss.
    """

    normalize = "classes"
    sees_batch = False  # whether a sample's weight depends on the others of its batch

    def __init__(self, start: float = 0.0, class_counts: checks.Counts | None = None) -> None:
        super().__init__(
            class_counts, persistent=False
        )  # made from the constructor's arguments: no part of a checkpoint
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


class Sampler(DistributedSampler[int]):
    """Which samples an epoch visits, in order. A subclass writes `order`.

    In one's own loop it is a PyTorch sampler: ``DataLoader(data, sampler=ClassBalancedSampler(labels))``; call
    `set_epoch` before each epoch, which Lightning and Accelerate do by themselves. Split over processes, each takes
    every `num_replicas`-th index of the one common order, so the order does not depend on how many there are. Who
    splits is found out when it is used: the process group if there is one, nobody where Accelerate will do it.
    `rank` and `num_replicas` win where they are given.

    `state_dict` tells how far an epoch is, over all processes together. Loaded into a sampler on any number of
    processes, it goes on with the samples that have not come yet, each once.

    It is a `DistributedSampler` because that is the sign by which Lightning, Fabric, Ray and Composer know that a
    sampler splits its indices itself.
    """

    composes_batches = False  # whether which samples follow each other is what it is for

    def __init__(self, labels: Any, *, seed: int = 0, rank: int | None = None, num_replicas: int | None = None) -> None:
        # not DistributedSampler's: it asks for a process group at once, and Lightning makes one later
        self.labels = torch.as_tensor(labels, device=home(labels)).long()
        if self.labels.dim() != 1 or not len(self.labels):
            raise ValueError(f"labels must be one class for each sample, not of shape {tuple(self.labels.shape)}")
        self.seed, self.shuffle, self.drop_last = seed, True, False
        self._rank = None if rank is None else checks.whole("rank", rank)
        self._num_replicas = None if num_replicas is None else checks.whole("num_replicas", num_replicas, 1)
        if rank is not None and num_replicas is not None:
            self._place()
        self.epoch, self._progress = 0, 0.0
        self._start = 0  # where in the order the next iteration begins
        self._began = 0  # where the last one did
        self._handed_out = 0  # by this process since then

    def order(self, generator: torch.Generator, progress: float = 0.0) -> Tensor:
        """The indices of one epoch, on the generator's device; `progress` is the share of training done."""
        raise NotImplementedError

    def set_epoch(self, epoch: int, progress: float | None = None) -> None:
        """Tell which epoch comes next; without it every epoch has the same order."""
        if epoch != self.epoch:
            self._start = self._began = self._handed_out = 0
        self.epoch, self._progress = epoch, 0.0 if progress is None else progress

    def state_dict(self, visited: int | None = None) -> dict[str, Any]:
        """The epoch, and the position in it: how many samples all processes together have had.

        Args:
            visited: how many samples of this epoch the process has trained on since it began, or went on with, the
                epoch. A loader reads ahead of the training, which a sampler cannot see; without `visited`, what was
                handed to the loader counts. Processes must have had as many each.
        """
        count = self._handed_out if visited is None else checks.whole("visited", visited)
        position = min(self._began + count * self.num_replicas, self.epoch_length)
        return {"epoch": self.epoch, "position": position, "progress": self._progress}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a sampler of the same data and seed was, on however many processes.

        The next iteration gives what is left of the epoch; `set_epoch` of another epoch begins that from its start.
        """
        position = checks.whole("position", state["position"], 0, self.epoch_length)
        self.epoch, self._progress = checks.whole("epoch", state["epoch"]), float(state["progress"])
        self._start = self._began = position
        self._handed_out = 0

    def _place(self) -> tuple[int, int]:
        """This process's number and how many processes share an epoch, as things are now."""
        rank, num_replicas = processes()
        rank = rank if self._rank is None else self._rank
        num_replicas = num_replicas if self._num_replicas is None else self._num_replicas
        if rank >= num_replicas:
            raise ValueError(f"rank must be below num_replicas ({num_replicas}), not {rank}")
        return rank, num_replicas

    @property
    def rank(self) -> int:  # type: ignore[override]  # read off the process group, so nobody may set it
        return self._place()[0]

    @property
    def num_replicas(self) -> int:  # type: ignore[override]
        return self._place()[1]

    @property
    def epoch_length(self) -> int:
        """How many samples all processes together visit in an epoch."""
        return len(self.labels)

    @property
    def num_samples(self) -> int:  # type: ignore[override]
        """How many this process visits."""
        return len(self)

    @property
    def total_size(self) -> int:  # type: ignore[override]
        """`epoch_length`, and what is repeated so that every process has as many samples as the others."""
        return len(self) * self.num_replicas

    def __len__(self) -> int:
        return -(-(self.epoch_length - self._start) // self.num_replicas)

    def __iter__(self) -> Iterator[int]:
        if accelerate_splits() and self.num_replicas > 1:
            warnings.warn(
                f"{type(self).__name__} splits an epoch over {self.num_replicas} processes because num_replicas was "
                "given; a loader that went through Accelerate's prepare splits it once more, so that most samples are "
                "never visited. Leave rank and num_replicas out for such a loader",
                stacklevel=2,
            )
        generator = torch.Generator("cpu").manual_seed(self.seed * 1_000_003 + self.epoch)
        order = self.order(generator, self._progress)
        first, end = self._start + self.rank, self._start + self.total_size
        # the order starts over where it is short of as many samples for each process
        wrapped = torch.arange(first, end, self.num_replicas, device="cpu") % len(order)
        self._began, self._start, self._handed_out = self._start, 0, 0
        return self._counted(order[wrapped].tolist())

    def _counted(self, indices: list[int]) -> Iterator[int]:
        for index in indices:
            self._handed_out += 1
            yield index


def home(values: Any) -> torch.device:
    """Where `values` are; a list is on the CPU, whatever PyTorch's default device is."""
    return values.device if isinstance(values, Tensor) else torch.device("cpu")


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
