"""How a batch's images reach the device: by a gather where they are at hand, else through a loader."""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..data import ImageFiles, OnDisk
from ..data.task import Images

LOADERS = min(4, os.cpu_count() or 1)  # processes that read ahead
AHEAD = 4  # batches that each of them keeps ready


class Resident:
    """Images on the device, or mapped by a CPU's process: a batch is one gather, part of a step's captured graph."""

    def __init__(self, images: Tensor | OnDisk) -> None:
        self.images = images

    def start_epoch(self, order: Tensor) -> None:
        """Nothing to fetch."""

    def advance(self) -> None:
        """Nothing to fetch."""

    def __call__(self, index: Tensor) -> Tensor:
        return self.images[index]


class Streamed:
    """Images on disk: processes read ahead into pinned memory; `advance` copies the next batch to where steps look.

    The place on the device never changes, so a captured step works as it does on resident images.
    """

    def __init__(self, images: OnDisk | ImageFiles, batch_size: int, device: torch.device) -> None:
        self.batches = _Batches(batch_size)
        self.loader = DataLoader(
            _Rows(images),
            sampler=self.batches,
            batch_size=None,  # an item is a whole batch already
            num_workers=LOADERS,
            prefetch_factor=AHEAD,
            persistent_workers=True,
            pin_memory=device.type == "cuda",
            multiprocessing_context="spawn",
        )
        self.place = torch.empty((batch_size, *images.shape[1:]), dtype=torch.uint8, device=device)
        self.waiting: Iterator[Tensor] = iter(())

    def start_epoch(self, order: Tensor) -> None:
        self.batches.order = order.cpu()
        self.waiting = iter(self.loader)

    def advance(self) -> None:
        self.place.copy_(next(self.waiting), non_blocking=True)

    def __call__(self, index: Tensor) -> Tensor:
        return self.place


Feed = Resident | Streamed


def feed_of(images: Images, batch_size: int, device: torch.device) -> Feed:
    """The way these images take."""
    if isinstance(images, Tensor) or (isinstance(images, OnDisk) and device.type == "cpu"):
        return Resident(images)
    return Streamed(images, batch_size, device)


class _Rows(Dataset[Tensor]):
    def __init__(self, images: OnDisk | ImageFiles) -> None:
        self.images = images

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self.images[rows]


class _Batches:
    """The epoch's order, cut into full batches; read in the main process, so that loaders outlive epochs."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size, self.order = batch_size, torch.empty(0, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.order) // self.batch_size

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.order[: len(self) * self.batch_size].view(-1, self.batch_size))
