"""Image files decoded into an arena's file, by threads or, where there are very many, by a process per core."""

from __future__ import annotations

import fcntl
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
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

PART = 8  # images that are decoded and then written at a time
MANY = 2**15  # images; processes take seconds to start, and outrun threads only where Python's lock holds those up
MOST_THREADS = 16  # more would wait for that lock


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
    written = _by_processes(parts) if len(images) >= MANY else _by_threads(parts)
    if failed := [failure for part in written for failure in part.failed]:
        raise Unreadable(failed)
    tables = [table_of(part.shapes) + torch.tensor([part.first, 0, 0]) for part in written]
    return torch.cat(tables) if tables else table_of([])


class _Parts(Dataset[Written]):
    """Part i, when it is asked for, is decoded and put at the end of the file."""

    def __init__(self, path: Path, images: ImageFiles) -> None:
        self.path, self.images, self.size = path, images, PART

    def __len__(self) -> int:
        return -(-len(self.images) // self.size)

    def __getitem__(self, i: int) -> Written:
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


def _by_threads(parts: _Parts) -> list[Written]:
    with ThreadPoolExecutor(max(READERS, min(_cores(), MOST_THREADS))) as pool, warnings.catch_warnings():
        _ignore_warnings()
        return list(pool.map(parts.__getitem__, range(len(parts))))


def _by_processes(parts: _Parts) -> list[Written]:
    loader = DataLoader(
        parts,
        batch_size=None,
        num_workers=_cores(),
        multiprocessing_context="spawn",
        collate_fn=_as_it_is,
        worker_init_fn=_ignore_warnings,
    )
    return list(loader)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ignore_warnings(worker: int = 0) -> None:
    """Pillow's, of what is then read all the same or refused."""
    warnings.simplefilter("ignore")


def _as_it_is(part: Any) -> Any:
    return part
