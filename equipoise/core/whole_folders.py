"""A folder that several processes want: one of them writes it, and where it is present it is complete."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the system frees the lock of one that dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `folder` at the end."""
    aside = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    yield aside
    os.rename(aside, folder)
