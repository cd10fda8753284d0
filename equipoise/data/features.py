"""Images that a frozen network has looked at: what it saw in them takes their place."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .task import Images


class Features:
    """The features (N, d) of images, which stand for these images: indexed and split it gives features.

    `shape` is that of the images.
    """

    def __init__(self, values: Tensor, images: Images) -> None:
        if len(values) != len(images):
            raise ValueError(f"expected the features of {len(images)} images, got {len(values)}")
        self.values, self.images = values, images

    @cached_property
    def mean_std(self) -> tuple[Tensor, Tensor]:
        """Mean and deviation of each feature (d,), in double precision."""
        values = self.values.cpu().double()
        return values.mean(0), values.std(0, correction=0)

    @property
    def shape(self) -> torch.Size:
        return torch.Size(self.images.shape)

    @property
    def device(self) -> torch.device:
        return self.values.device

    def __len__(self) -> int:
        return len(self.values)

    def numel(self) -> int:
        """Bytes that the features take."""
        return self.values.nbytes

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        if isinstance(index, Tensor) and index.dtype is torch.int64:
            return self.values.index_select(0, index)  # faster than by brackets
        return self.values[index]

    def split(self, size: int) -> tuple[Tensor, ...]:
        return self.values.split(size)

    def take(self, rows: Tensor) -> Features:
        """These rows alone."""
        there = rows.cpu()
        images = self.images[there] if isinstance(self.images, Tensor) else self.images.take(there)
        return Features(self.values[rows.to(self.device)], images)

    def in_memory(self) -> Features:
        return self

    def to(self, device: torch.device | str) -> Features:
        """The same with the features on `device`."""
        return Features(self.values.to(device), self.images)
