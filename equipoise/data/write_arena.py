"""Image files decoded into an arena's file, by threads or, where there are many, by a process per core."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .decode import import_pillow
from .image_files import READERS, Failure, ImageFiles, Unreadable
from .ragged import table_of

PART = 128  # images that are decoded and then written at a time
MANY = 8_192  # images; processes take seconds to start, and outrun threads only where Python's lock holds those up


class Written(NamedTuple):
    """A part of the images in the file: its first pixel, heights and widths, and what could not be read."""

    first: int
    shapes: list[tuple[int, ...]]
    failed: list[Failure]


def write_arena(path: Path, images: ImageFiles) -> Tensor:
    """Decode images into a file of pixels, and give their table (N, 3), see `Ragged`; the error names all failures.

    Parts lie in the file in the order in which they were ready.
    """
    import_pillow()
    path.touch()
    parts = _Parts(path, images)
    written = list(_by_processes(parts) if len(images) >= MANY else map(parts.__getitem__, range(len(parts))))
    if failed := [failure for part in written for failure in part.failed]:
        raise Unreadable(failed)
    tables = [table_of(part.shapes) + torch.tensor([part.first, 0, 0]) for part in written]
    return torch.cat(tables) if tables else table_of([])


def _by_processes(parts: _Parts) -> Iterable[Written]:
    parts.readers = 1
    return DataLoader(
        parts,
        batch_size=None,
        num_workers=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        multiprocessing_context="spawn",
        collate_fn=_as_it_is,
    )


def _as_it_is(part: Any) -> Any:
    return part


class _Parts(Dataset[Written]):
    """Part i, when it is asked for, is decoded and put at the end of the file; in this process by `readers` threads."""

    def __init__(self, path: Path, images: ImageFiles) -> None:
        self.path, self.readers = path, READERS
        self.parts = [images.take(rows) for rows in torch.arange(len(images)).split(PART)]

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, i: int) -> Written:
        arrays, failed = self.parts[i].attempted(self.readers)
        return Written(0 if failed else _append(self.path, arrays), [array.shape[:2] for array in arrays], failed)


def _append(path: Path, images: list[NDArray[np.uint8]]) -> int:
    """Put the pixels at the end of the file; the place of the first of them."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        first = file.seek(0, os.SEEK_END) // 3
        file.writelines(np.ascontiguousarray(image).data for image in images)
    return first
