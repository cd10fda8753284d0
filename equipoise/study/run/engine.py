"""Where a study's loads are done: an `Engine` has seats for them. The study's own code knows no more of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ...core.progress import Progress
from ...store import Store
from ...train import Recipe
from .child import Message
from .how import How
from .job import Job

S = TypeVar("S", bound="Seat")


class Seat(Protocol):
    """A place for one load at a time: a pack of jobs that are done together.

    What it tells is "begun", "epoch" (member, epochs done, latest values), and last of all "answer" (which members
    were ours to do, None after `stop`), "error" (`Trouble`), "died" (`Death`) or "lost" (why, in words).
    """

    load: list[Job]  # empty: free for another

    def place(self, member: int) -> int:
        """A number for the bar of this member of the load, which no other run under way has."""

    def start(self, load: list[Job]) -> None: ...

    def stop(self) -> None:
        """Ask for an end; the seat tells when it has come."""

    def receive(self) -> list[Message]:
        """What was told since the last time; after its last word the seat has no load."""

    def close(self) -> None:
        """End whatever is under way, at once."""


class Engine(Protocol[S]):
    """Makes seats, and knows what must be known before they are used."""

    stop_words: str  # what happens at Ctrl-C to runs under way

    def look_at_images(self, recipe: Recipe, progress: Progress) -> None:
        """Make sure, before anything is trained, that the images of a recipe can be read wherever it will be."""

    def check(self, jobs: Sequence[Job]) -> None:
        """Refuse what cannot be computed here."""

    def pack_size(self, jobs: Sequence[Job]) -> int:
        """How many runs to train side by side in one load."""

    def seats(self, loads: int) -> list[S]:
        """Those that so many loads can use."""

    def ready(self, seats: Sequence[S], seconds: float) -> list[S]:
        """Those of the busy `seats` that have something to tell, waiting for so long at most."""


def engine_of(store: Store, how: How) -> Engine:
    """The engine that the user chose."""
    if how.engine == "ray":
        from .cluster.engine import RayEngine

        return RayEngine(store, how)
    from .local import LocalEngine

    return LocalEngine(store, how)
