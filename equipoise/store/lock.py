"""Who is at work in a store: several processes on one study, never two studies at once."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from ..core import EquipoiseError
from .damage import explained
from .documents import StudyDocument
from .store import Store
from .sweep import sweep

Plain = Mapping[str, Any]


@contextmanager
def at_work(store: Store, study: Plain, alike: Callable[[Plain, Plain], bool] | None = None) -> Iterator[None]:
    """Within, study.json is `study` and stays so: who comes with another study is refused.

    Others on the same study, or on one that is `alike`, share the folder. The last to leave, if all went well, clears
    away what no run can use any more.
    """
    with _opened(store, "study") as lock:
        with _opened(store, "gate") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)  # for this moment, so that two who begin together do so one by one
            _begin(store, lock, json.loads(json.dumps(study)), alike or _equal)
        yield
        if _alone(lock):
            sweep(store)


def _begin(store: Store, lock: IO[str], study: Plain, alike: Callable[[Plain, Plain], bool]) -> None:
    if not alike(_current(store), study):
        if not _alone(lock):
            raise EquipoiseError(
                f"another study is being run in {store.path}: wait until it has ended, or choose another folder with "
                "--out"
            )
        store.write_json(StudyDocument.FILE, study)
    fcntl.flock(lock, fcntl.LOCK_SH)


def _opened(store: Store, name: str) -> IO[str]:
    with explained(store.path):
        return open(store.path / "locks" / name, "a")


def _equal(one: Plain, other: Plain) -> bool:
    return one == other


def _current(store: Store) -> Plain:
    try:
        return store.read_json(StudyDocument.FILE)
    except EquipoiseError:  # none yet, or a damaged one: it is written anew
        return {}


def _alone(lock: IO[str]) -> bool:
    """Whether nobody else is at work; if so, nobody can begin until the lock is shared or free again."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
