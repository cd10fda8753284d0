"""The driver's end of a load on the cluster: its claims, its attempts, and what they bring into the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ....store import Damaged, Store
from ....store.underway import note_epoch
from ..child import Message, Trouble
from ..job import Job
from ..loads import epochs_of
from .order import keep_checkpoint
from .task import LAST_WORDS

Submit = Callable[[list[Job]], Any]  # gives the stream of messages of a Ray task

ENDS = (*LAST_WORDS, "lost")


@dataclass(eq=False)
class Attempt:
    """A task that does the load; `began` when it had a place and was at work."""

    stream: Any
    began: float | None = None


class RaySeat:
    """A load under way has one attempt, or near the end of a study two: the first to answer wins."""

    def __init__(self, number: int, store: Store, ray: Any, submit: Submit) -> None:
        self.number, self.store, self.ray, self.submit = number, store, ray, submit
        self.load: list[Job] = []
        self.attempts: list[Attempt] = []
        self.pace: float | None = None  # seconds per epoch of the load that was answered last
        self.stopping = False
        self._claims = ExitStack()
        self._members: list[int] = []  # of the load: those whose claims are ours
        self._epochs: list[int] = []  # done so far, by member

    def place(self, member: int) -> int:
        return self.number * 100 + member

    def start(self, load: list[Job]) -> None:
        self.load, self.stopping, self._epochs = load, False, [0] * len(load)
        mine = [self._claims.enter_context(self.store.claim(job.training.key)) for job in load]
        self._members = [member for member, ours in enumerate(mine) if ours]
        self.attempts = [self._attempt()] if self._members else []

    def double(self) -> None:
        """Let another node try as well, from the latest checkpoint."""
        self.attempts.append(self._attempt())

    def pace_if_done(self, now: float) -> float:
        """Seconds per epoch of the load, if it were done now: a straggler's grows beyond the usual."""
        return self._pace(self.attempts[0], now) if self.attempts else 0.0

    def _pace(self, attempt: Attempt, now: float) -> float:
        return 0.0 if attempt.began is None else (now - attempt.began) / epochs_of(self.load)

    def _attempt(self) -> Attempt:
        return Attempt(self.submit([self.load[member] for member in self._members]))

    def stop(self) -> None:  # Ctrl-C can come in the middle of anything, so that `receive` does it
        self.stopping = True

    def receive(self) -> list[Message]:
        told: list[Message] = []
        for attempt in list(self.attempts):
            for message in self._arrived(attempt):
                told += self._taken(attempt, message)
        if self.load and (self.stopping or not self.attempts) and not (told and told[-1][0] in ENDS):
            told.append(self._last(("answer", None if self.stopping else [False] * len(self.load))))
        return told

    def close(self) -> None:
        """The claims are free afterwards."""
        for attempt in self.attempts:
            self._cancel(attempt)
        self.attempts, self.load = [], []
        self._claims.close()

    # -- what a task has yielded -------------------------------------------------------------------------------------

    def _arrived(self, attempt: Attempt) -> Iterator[Message]:
        """Its messages so far; where it cannot go on, that is the last one."""
        while attempt in self.attempts:
            ready, _ = self.ray.wait([attempt.stream], timeout=0)
            if not ready:
                return
            try:
                yield self.ray.get(next(attempt.stream))
            except StopIteration:
                yield "lost", "its task ended before it was done"
            except self.ray.exceptions.RayError as error:
                yield self._failed(error)

    def _failed(self, error: Exception) -> Message:
        if isinstance(error, self.ray.exceptions.RayTaskError):  # an error of ours, or a node without equipoise
            return "error", Trouble(str(error).strip().splitlines()[-1])
        if isinstance(error, self.ray.exceptions.OutOfMemoryError):
            return "error", Trouble("the node's memory ran out", memory=True)
        return "lost", f"its worker or node is gone ({type(error).__name__})"

    def _taken(self, attempt: Attempt, message: Message) -> list[Message]:
        """Keep what belongs into the store; what is left is to be told."""
        what, content = message
        if what == "begun":
            attempt.began = time.monotonic()
            return [message] if attempt is self.attempts[0] else []
        if what == "run":
            return self._adopted(attempt, *content)
        if what == "checkpoint":
            if attempt is self.attempts[0]:
                keep_checkpoint(self.store, *content)
            return []
        if what == "epoch":
            return self._epoch(*content)
        return self._ended(attempt, message)

    def _adopted(self, attempt: Attempt, key: str, files: dict[str, bytes]) -> list[Message]:
        try:
            if not self.store.has(key):
                self.store.adopt(key, files)
        except Damaged as damage:
            self._cancel(attempt)
            return self._ended(attempt, ("lost", f"what it sent was damaged on the way ({damage.problem})"))
        return []

    def _epoch(self, place: int, epoch: int, latest: dict[str, float]) -> list[Message]:
        member = self._members[place]
        if epoch <= self._epochs[member]:  # the slower one of two attempts
            return []
        self._epochs[member] = epoch
        training = self.load[member].training
        note_epoch(self.store, training.key, epoch, training.plan.epochs)
        return [("epoch", (member, epoch, latest))]

    def _ended(self, attempt: Attempt, message: Message) -> list[Message]:
        """Of two attempts, one that fails is forgotten, and one that answers ends the other.

        It ends by itself: a process that Ray is made to end could not take the next task.
        """
        self.attempts.remove(attempt)
        what, content = message
        if what != "answer" and self.attempts:
            return []
        if what == "answer":
            self.pace = self._pace(attempt, time.monotonic())
            content = [member in self._members for member in range(len(self.load))]
        return [self._last((what, content))]

    def _last(self, message: Message) -> Message:
        self.close()
        return message

    def _cancel(self, attempt: Attempt) -> None:
        self.ray.cancel(attempt.stream, force=True)
