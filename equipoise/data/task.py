"""`Task`: the data of a question, fixed before any method sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeGuard

import torch
from torch import Tensor

from .arena import indexed
from .channels import channel_mean_std
from .features import Features
from .frame import Frame
from .image_files import ImageFiles
from .on_disk import OnDisk
from .ragged import Ragged
from .shards.images import ShardImages

SCALE_IMAGES = 4_096  # that mean and standard deviation of images that are streamed are taken of

Images = Tensor | OnDisk | ImageFiles | Ragged | Features


def at_hand(images: Images, device: torch.device) -> bool:
    """Whether a batch of them is made on `device` in one go, without a loader."""
    if isinstance(images, Ragged | Features):
        return images.device == indexed(device)
    return isinstance(images, Tensor) or (isinstance(images, OnDisk | ShardImages) and device.type == "cpu")


def streamed(images: Images) -> TypeGuard[ShardImages]:
    """Whether they stay where they are, and are decoded whenever they are read."""
    return isinstance(images, ShardImages) and images.stream


def frame_of(images: Images) -> Frame | None:
    """The sizes of images that are kept whole; None for squares."""
    if isinstance(images, Features):
        return frame_of(images.images)
    frame = images.frame if isinstance(images, ImageFiles | Ragged) else None
    return frame if frame is not None and frame.whole else None


@dataclass(frozen=True)
class Split:
    """Images (N, c, h, w) as uint8 and their labels (N,) as int64.

    Images may be left on disk, and may be kept whole, each in its own shape (`Ragged`): they are then indexed and split
    as their test views, which have one shape. `Features` may stand for them.
    """

    images: Images
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> Split:
        """The same on `device`, except for images that are on disk: those come a batch at a time."""
        images = self.images.to(device) if isinstance(self.images, Tensor | Ragged | Features) else self.images
        return Split(images, self.labels.to(device))

    def in_memory(self) -> Split:
        """The same with all images read, unless they are streamed."""
        if isinstance(self.images, Tensor) or streamed(self.images):
            return self
        return Split(self.images.in_memory(), self.labels)

    def dense(self) -> Split:
        """The same with all images read, as a tensor: of images that are kept whole, the test views."""
        if isinstance(self.images, Tensor):
            return self
        if isinstance(self.images, Features):
            return Split(self.images.images, self.labels).dense()
        parts = list(self.images.split(1024)) or [torch.empty(self.images.shape, dtype=torch.uint8)]
        return Split(torch.cat(parts), self.labels)

    def take(self, rows: Tensor) -> Split:
        """These samples alone."""
        images = self.images[rows] if isinstance(self.images, Tensor) else self.images.take(rows)
        return Split(images, self.labels[rows])


@dataclass(frozen=True)
class Task:
    """Train, validation and test data with class names. `valid` may be empty. No method may change it.

    `fingerprint` is a hash of exactly which images were drawn, and of what they are, kept in every record. `content`
    tells the whole set from any other; None where it comes with a package.
    """

    name: str
    train: Split
    valid: Split
    test: Split
    class_names: tuple[str, ...]
    fingerprint: str
    content: str | None = None

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def class_counts(self) -> Tensor:
        """Training images of each class (C,)."""
        return torch.bincount(self.train.labels.cpu(), minlength=self.num_classes)

    @cached_property
    def mean_std(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each channel of the training images (test views), on the scale 0 to 1.

        Of images that are streamed, some from all over the set stand for all.
        """
        images = self.train.images
        if streamed(images):
            rows = torch.linspace(0, len(images) - 1, min(len(images), SCALE_IMAGES), dtype=torch.float64)
            images = images.take(rows.round().long())
        return channel_mean_std(images.split(1024))

    def facts(self) -> dict[str, Any]:
        """What methods may ask for by argument name."""
        return {
            "class_counts": self.class_counts,
            "num_classes": self.num_classes,
            "labels": self.train.labels,
            "in_channels": self.train.images.shape[1],
        }

    def bytes_to(self, device: torch.device) -> int:
        """Memory that all images would take on `device`; an arena goes there whole, and once for all tasks."""
        every = [split.images for split in (self.train, self.valid, self.test)]
        arenas = {images.arena.original for images in every if isinstance(images, Ragged)}
        new = sum(arena.pixels.numel() for arena in arenas if not arena.has_copy(device))
        return new + sum(images.numel() for images in every if not isinstance(images, Ragged))

    def in_memory(self) -> Task:
        """The same task with all images read."""
        train, valid, test = (split.in_memory() for split in (self.train, self.valid, self.test))
        return replace(self, train=train, valid=valid, test=test)

    def to(self, device: torch.device | str) -> Task:
        """The same task with its tensors on `device`; images on disk stay there."""
        return replace(self, train=self.train.to(device), valid=self.valid.to(device), test=self.test.to(device))
