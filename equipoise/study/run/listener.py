"""Who is told how long work goes. The drivers know a `Listener` and nothing of terminals or notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

from ...core.progress import Progress
from ...store import Store
from .workers import Event

Tone = Literal["plain", "faint", "warning", "failure"]


class Watch:
    """Is told of every event while runs are done; this one looks away."""

    def event(self, event: Event, store: Store) -> None:
        """Something happened to a job."""

    def count(self, done: int) -> None:
        """So many runs are done by now, whatever was counted before."""


class Listener:
    """Is told what happens; this one keeps silent. Derive from it, and override what you care about."""

    def say(self, text: str, tone: Tone = "plain") -> None:
        """A sentence for people."""

    def runs(self, names: Mapping[str, str], total: int, done: int) -> AbstractContextManager[Watch]:
        """Watches `total` runs of which so many are `done` already; `names` maps keys of recipes to names."""
        return nullcontext(Watch())

    @contextmanager
    def steps(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        """While work of `total` steps is done; what it gives is called after each, with its name."""
        yield lambda name: None

    @contextmanager
    def stages(self) -> Iterator[Progress]:
        """While work of several stages is done; what it gives is called with a stage, its steps done, and all."""
        yield lambda stage, done, total: None


def news_of(event: Event, names: Mapping[str, str], store: Store) -> list[tuple[str, Tone]]:
    """The sentences that an event is worth: that a run is tried again, the notes of a run, its failure."""
    if event.what == "again":
        return [(f"again {name_of(event, names)}: {event.error}", "warning")]
    if event.what != "done":
        return []
    told: list[tuple[str, Tone]] = []
    for recipe in event.job.recipes:
        record, name = store.get(recipe.key), names.get(recipe.key, "a training")
        told += [(f"{name}: {note}", "plain") for note in record.notes]
        if not record.finished:
            last_line = (record.error or "no reason was recorded").strip().splitlines()[-1]
            told.append((f"failed {name}: {last_line}", "failure"))
    return told


def name_of(event: Event, names: Mapping[str, str]) -> str:
    """The method's name; a training that only post-hoc methods use goes by the first of them."""
    return next(names[recipe.key] for recipe in event.job.recipes if recipe.key in names)


def score_note(event: Event) -> str:
    """How a run stands after an epoch, in a few words."""
    latest = event.latest or {}
    note = f"loss {latest['train_loss']:.2f}"
    if "valid_balanced_accuracy" in latest:
        note += f", valid {100 * latest['valid_balanced_accuracy']:.0f} %"
    return note
