"""How far a run under way has come: unfinished/KEY/underway.json, for another terminal to read.

A run that was told to wait half-way leaves its curves so far in unfinished/KEY/waiting.json.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass

from ..core.files import write_whole
from .checked_json import from_bytes, has_checksum, to_bytes
from .store import Store

WAITING = "waiting.json"
EVERY = 1.0  # seconds between two notes; short epochs are not slowed down by the disk


@dataclass(frozen=True)
class UnderWay:
    """`epoch` of `epochs` were done at the time `at`; one takes about `seconds`, where that is known."""

    epoch: int
    epochs: int
    at: float
    seconds: float | None = None

    @property
    def seconds_left(self) -> float | None:
        return None if self.seconds is None else self.seconds * (self.epochs - self.epoch)


def note_epoch(store: Store, key: str, epoch: int, epochs: int) -> None:
    """Note that a run has done so many epochs. Only who holds the claim of `key` may; `Store.put` takes it away again.

    It is told once a second at most, and not forced to the disk: nothing but a display depends on it.
    """
    last, now = read_note(store, key), time.time()
    if last and 0 <= now - last.at < EVERY:
        return
    seconds = (now - last.at) / (epoch - last.epoch) if last and last.epoch < epoch and last.at < now else None
    path = store.scratch(key) / "underway.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(asdict(UnderWay(epoch, epochs, now, seconds))))
    os.replace(aside, path)


def read_note(store: Store, key: str) -> UnderWay | None:
    """What was noted last; None if nothing was, or it cannot be read."""
    try:
        return UnderWay(**json.loads((store.scratch(key) / "underway.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def note_waiting(store: Store, key: str, curves: dict[str, list[float]]) -> None:
    """Note the curves of a run that waits half-way, beside its checkpoint. Only who holds the claim of `key` may."""
    write_whole(store.scratch(key) / WAITING, to_bytes(curves))


def waiting_curves(store: Store, key: str) -> dict[str, list[float]]:
    """The curves of a run that waits half-way, one value an epoch; none if it does not wait, or they are damaged.

    A race judges by them. Without them the run is taken up from its checkpoint, and waits again.
    """
    try:
        raw = (store.scratch(key) / WAITING).read_bytes()
        return dict(from_bytes(raw)) if has_checksum(raw) else {}
    except (OSError, ValueError):
        return {}
