"""Image files decoded into an arena's file, by threads or, where there are many, by a process per core."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
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
MANY = {"fork": 2**10, "spawn": 2**15}  # images from which on processes pay, by how these start: copied, or anew
MOST_THREADS = 16  # more would wait for Python's lock, which also holds up fewer: processes outrun them
FEW_CORES = 4  # below so many, threads do as well


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
    by_processes = _cores() >= FEW_CORES and len(images) >= MANY[_start()]
    written = _by_processes(parts) if by_processes else _by_threads(parts)
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
        multiprocessing_context=_start(),
        collate_fn=_as_it_is,
        worker_init_fn=_begin_worker,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)  # of threads: see `_start`
        return list(loader)


def _start() -> str:
    """How a process starts: on Linux as a copy, which takes milliseconds; it calls Pillow and a kernel without threads,
    and no more, so that it does not miss the threads of the process that it is a copy of."""
    return "fork" if sys.platform == "linux" else "spawn"


def _begin_worker(worker: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for this one
    _ignore_warnings()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ignore_warnings() -> None:
    """Pillow's, of what is then read all the same or refused."""
    warnings.simplefilter("ignore")


def _as_it_is(part: Any) -> Any:
    return part
