"""What comes back from a node: finished runs at once, checkpoints now and then."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from ....core.files import CHECKPOINT
from ....store import Store
from ..child import Message

SECONDS = 2.0  # between two checkpoints of a run, at least
BYTES_PER_SECOND = 2e6  # of checkpoints of one run, at most: many come together at the driver


class Parcels:
    """Notices what is new in a node's store about the runs with these keys."""

    def __init__(self, store: Store, keys: Iterable[str]) -> None:
        self.store = store
        self.keys = [key for key in keys if not store.has(key)]
        self.seen = {key: self._written(key) for key in self.keys}
        self.next = dict.fromkeys(self.keys, 0.0)

    def new(self) -> Iterator[Message]:
        """("run", (key, files)) and ("checkpoint", (key, content))."""
        for key in list(self.keys):
            if self.store.has(key):
                self.keys.remove(key)
                yield "run", (key, self.store.files_of(key))
            elif time.monotonic() >= self.next[key] and (written := self._written(key)) != self.seen[key]:
                with suppress(FileNotFoundError):  # its run has just ended
                    content = (self.store.scratch(key) / CHECKPOINT).read_bytes()
                    self.seen[key] = written
                    self.next[key] = time.monotonic() + max(SECONDS, len(content) / BYTES_PER_SECOND)
                    yield "checkpoint", (key, content)

    def _written(self, key: str) -> int:
        """When the checkpoint was written; 0 where there is none."""
        with suppress(FileNotFoundError):
            return (self.store.scratch(key) / CHECKPOINT).stat().st_mtime_ns
        return 0
