"""A folder of a node for the packs of one driver: sets of images that they share, and a store for each pack.

The folder of a driver that is gone, killed perhaps, is removed by the next one that comes to the node.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO

from ....store import Store
from ..shared import cache_of


@contextmanager
def work_in(driver: str) -> Iterator[Store]:
    """An empty store for a pack, gone afterwards; its images are in a folder that all packs of the driver share."""
    folder = _entered(driver)
    shared = folder / "shared"
    shared.mkdir(exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        store = Store(place / "store").create()
        cache_of(store).symlink_to(shared)
        yield store
    finally:
        shutil.rmtree(place, ignore_errors=True)


def leave(driver: str) -> None:
    """Remove a driver's folder from this node; who has mapped images keeps them."""
    shutil.rmtree(_all_drivers() / driver, ignore_errors=True)


def _all_drivers() -> Path:
    folder = Path(tempfile.gettempdir()) / f"equipoise-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


_held: list[IO[str]] = []  # locks, until this process ends


@lru_cache(maxsize=1)
def _entered(driver: str) -> Path:
    """The driver's folder, held by this process as long as it lives."""
    everything = _all_drivers()
    with (everything / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)  # so that nobody removes what is just being made
        folder = everything / driver
        folder.mkdir(exist_ok=True)
        _held.append((folder / "held").open("w"))
        fcntl.flock(_held[-1], fcntl.LOCK_SH)
        for other in everything.iterdir():
            if other.is_dir() and not _is_held(other):
                shutil.rmtree(other, ignore_errors=True)
    return folder


def _is_held(folder: Path) -> bool:
    try:
        with (folder / "held").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # it is being removed
        return False
    return False
