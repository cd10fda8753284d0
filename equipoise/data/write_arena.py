"""Image files decoded into an arena's file."""

from __future__ import annotations

import fcntl
import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core.processors import core_count
from .decode import import_pillow
from .image_files import READERS, Failure, ImageFiles, Unreadable
from .parallel import in_parallel
from .ragged import table_of

PART = 8  # images that are decoded and then written at a time
MOST_THREADS = 16  # more would wait for Python's lock


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, of what is then read all the same or refused
        threads = max(READERS, min(core_count(), MOST_THREADS))
        written = in_parallel(parts.write, range(parts.number), len(images), threads)
    if failed := [failure for part in written for failure in part.failed]:
        raise Unreadable(failed)
    tables = [table_of(part.shapes) + torch.tensor([part.first, 0, 0]) for part in written]
    return torch.cat(tables) if tables else table_of([])


class _Parts:
    """The images in parts that are decoded and put at the end of the file."""

    def __init__(self, path: Path, images: ImageFiles) -> None:
        self.path, self.images, self.size = path, images, PART
        self.number = -(-len(images) // PART)

    def write(self, i: int) -> Written:
        rows = torch.arange(i * self.size, min((i + 1) * self.size, len(self.images)))
        arrays, failed = self.images.take(rows).attempted()
        return Written(0 if failed else _append(self.path, arrays), [array.shape[:2] for array in arrays], failed)


def _append(path: Path, images: list[NDArray[np.uint8]]) -> int:
    """Put the pixels at the end of the file; the place of the first of them."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # of this opening: it keeps threads apart as well as processes
        first = file.seek(0, os.SEEK_END) // 3
        file.writelines(np.ascontiguousarray(image).data for image in images)
    return first
