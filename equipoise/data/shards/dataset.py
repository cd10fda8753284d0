"""Shards in one's own loop, as a PyTorch data set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from ...core.escaping import visible
from ..decode import DataError
from ..frame import Frame
from .images import ShardImages
from .index import read_index


class ShardDataset(Dataset[tuple[Any, int]]):
    """A part of a folder of shards: images as uint8 (3, size, size), and their classes, by number.

    Any sampler will do; ``equipoise.imbalance.ShardSampler`` reads few shards at a time.

    Args:
        path: the folder of shards, with the index that ``equipoise shards`` makes.
        part: "train", "valid" or "test".
        size: side of the square that is seen; with `resize` and `keep` as in the task ``folder``.
        transform: makes something else of an image, which it is given as it is kept: (h, w, 3) as uint8.
    """

    def __init__(
        self,
        path: str | Path,
        part: str = "train",
        size: int = 64,
        resize: int | None = None,
        keep: int | None = None,
        transform: Callable[[NDArray[np.uint8]], Any] | None = None,
    ) -> None:
        frame, index = Frame(size, resize, keep), read_index(Path(path).expanduser())
        if part not in index.parts:
            raise DataError(f"{visible(index.folder)} has no part {visible(part)}: it has {', '.join(index.parts)}")
        shards = [shard for shard in index.shards if shard.part == part]
        self.images, self.transform = ShardImages(index.folder, shards, frame), transform
        self.labels = torch.from_numpy(np.concatenate([shard.labels for shard in shards]))
        self.class_names, self.class_counts = index.class_names, torch.tensor(index.class_counts(part))

    @property
    def shards(self) -> Tensor:
        """The shard of each sample (N,)."""
        return self.images.shard_numbers

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[Any, int]:
        image = self.images.image(row)
        seen = self.images.view(image) if self.transform is None else self.transform(image)
        return seen, int(self.labels[row])
