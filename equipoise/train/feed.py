"""How a batch's images reach the device: by a gather where they are at hand, else through a loader.

Where images are kept whole and the augmentation begins with a crop, the boxes of an epoch are drawn on the device as
it begins, and are cut out where the images are. So loaders that read ahead need no random numbers, and a run through
them is the run that it would be with its images on the device.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..data import Augment, Crops, crops_of
from ..data.task import Images, at_hand

LOADERS = min(4, os.cpu_count() or 1)  # processes that read ahead
AHEAD = 4  # batches that each of them keeps ready


class Resident:
    """Images on the device, or mapped by a CPU's process: a batch is one gather, part of a step's captured graph."""

    def __init__(self, images: Images) -> None:
        self.images = images

    def start_epoch(self, order: Tensor, generator: torch.Generator) -> None:
        """Nothing to fetch."""

    def advance(self) -> None:
        """Nothing to fetch."""

    def __call__(self, index: Tensor, place: Tensor) -> Tensor:
        """The images at `index`, which is at `place` in the order of the epoch."""
        return self.images[index]


class Cropped:
    """Whole images on the device, or mapped by a CPU's process: a batch is cut out of them, in a captured step too."""

    def __init__(self, crops: Crops) -> None:
        self.crops = crops
        self.boxes = torch.empty(0)

    def start_epoch(self, order: Tensor, generator: torch.Generator) -> None:
        boxes = self.crops.draw(order, generator)
        if self.boxes.shape == boxes.shape:
            self.boxes.copy_(boxes)  # where a captured step looks
        else:
            self.boxes = boxes

    def advance(self) -> None:
        """Nothing to fetch."""

    def __call__(self, index: Tensor, place: Tensor) -> Tensor:
        return self.crops(index, self.boxes[place])


class Streamed:
    """Images on disk: processes read ahead into pinned memory; `advance` copies the next batch to where steps look.

    The place on the device never changes, so a captured step works as it does on resident images.
    """

    def __init__(self, images: Images, batch_size: int, device: torch.device, augment: Augment) -> None:
        self.rows = _Rows(images, crops_of(images, augment))
        self.batches = _Batches(batch_size)
        self.loader = DataLoader(
            self.rows,
            sampler=self.batches,
            batch_size=None,  # an item is a whole batch already
            num_workers=LOADERS,
            prefetch_factor=AHEAD,
            persistent_workers=True,
            pin_memory=device.type == "cuda",
            multiprocessing_context="spawn",
        )
        # crops have the channels last; a copy between two layouts would wait
        layout = torch.contiguous_format if self.rows.crops is None else torch.channels_last
        shape = (batch_size, *self.rows.shape)
        self.place = torch.empty(shape, dtype=torch.uint8, device=device, memory_format=layout)
        self.waiting: Iterator[Tensor] = iter(())

    def start_epoch(self, order: Tensor, generator: torch.Generator) -> None:
        self.batches.order, self.batches.boxes = order.cpu(), self.rows.boxes(order, generator).cpu()
        self.waiting = iter(self.loader)

    def advance(self) -> None:
        self.place.copy_(next(self.waiting), non_blocking=True)

    def __call__(self, index: Tensor, place: Tensor) -> Tensor:
        return self.place


Feed = Resident | Cropped | Streamed


def feed_of(images: Images, batch_size: int, device: torch.device, augment: Augment) -> Feed:
    """The way these images take; where `augment` begins with a crop of whole images, that is done on the way."""
    if not at_hand(images, device):
        return Streamed(images, batch_size, device, augment)
    crops = crops_of(images, augment)
    return Resident(images) if crops is None else Cropped(crops)


class _Rows(Dataset[Tensor]):
    """Batches of images by their rows, and by their boxes where those are cut out."""

    def __init__(self, images: Images, crops: Crops | None) -> None:
        self.images, self.crops = images, crops

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one image of a batch."""
        return tuple(self.images.shape[1:]) if self.crops is None else (3, *self.crops.size)

    def boxes(self, order: Tensor, generator: torch.Generator) -> Tensor:
        """Those of an epoch; of no columns where nothing is cut out."""
        return torch.empty(len(order), 0) if self.crops is None else self.crops.draw(order, generator)

    def __getitem__(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        rows, boxes = batch
        return self.images[rows] if self.crops is None else self.crops(rows, boxes)


class _Batches:
    """The epoch's order and boxes, cut into full batches; read in the main process, so that loaders outlive epochs."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.order, self.boxes = torch.empty(0, dtype=torch.int64), torch.empty(0, 0)

    def __len__(self) -> int:
        return len(self.order) // self.batch_size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        both = zip(self.order.split(self.batch_size), self.boxes.split(self.batch_size), strict=True)
        return islice(both, len(self))
