"""Clears away what a complete study leaves: files half written by a process that was killed, and checkpoints of recipes
that are not asked for any more."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

from .store import Store

_ASIDE = re.compile(r"\..+\.(\d+)")  # as `write_whole` names a file that it has not renamed yet
OLD = 60.0  # seconds: longer than it takes to write a small file, should its process live on another machine


def sweep(store: Store) -> None:
    """Only for who has the store to himself and finds its study complete: then no checkpoint is of use to anyone.

    A search for hyper-parameters has runs of its own; as long as one is at work here, nothing is touched.
    """
    with store.claim("tune") as mine:
        if mine:
            for leftover in (store.path / "unfinished").iterdir():
                shutil.rmtree(leftover, ignore_errors=True)
    for folder in (store.path, store.path / "analysis"):
        for file in folder.glob(".*"):
            if file.is_file() and _is_orphan(file):
                file.unlink(missing_ok=True)


def _is_orphan(file: Path) -> bool:
    """Whether the process that was writing it is gone."""
    match = _ASIDE.fullmatch(file.name)
    return match is not None and time.time() - file.stat().st_mtime > OLD and not _lives(int(match[1]))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
