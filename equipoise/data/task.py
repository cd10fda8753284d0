"""`Task`: the data of a question, fixed before any method sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Split:
    """Images (N, c, h, w) as uint8 and their labels (N,) as int64."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> Split:
        return Split(self.images.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Task:
    """Train, validation and test data with class names. `valid` may be empty. No method may change it.

    `fingerprint` is a hash of exactly which images were drawn, kept in every record.
    """

    name: str
    train: Split
    valid: Split
    test: Split
    class_names: tuple[str, ...]
    fingerprint: str

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def class_counts(self) -> Tensor:
        """Training images of each class (C,)."""
        return torch.bincount(self.train.labels.cpu(), minlength=self.num_classes)

    @cached_property
    def mean_std(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each channel of the training images, on the scale 0 to 1."""
        pixels = self.train.images.double() / 255
        # a channel that never varies would divide by zero
        return pixels.mean((0, 2, 3)).float(), pixels.std((0, 2, 3)).clamp_min(1e-3).float()

    def facts(self) -> dict[str, Any]:
        """What methods may ask for by argument name."""
        return {
            "class_counts": self.class_counts,
            "num_classes": self.num_classes,
            "labels": self.train.labels,
            "in_channels": self.train.images.shape[1],
        }

    def to(self, device: torch.device | str) -> Task:
        """The same task with its tensors on `device`."""
        return replace(self, train=self.train.to(device), valid=self.valid.to(device), test=self.test.to(device))
