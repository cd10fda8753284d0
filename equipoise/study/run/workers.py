"""Hands a study's jobs to the seats of an engine, and decides what follows from what they tell.

A worker that is killed frees its claims (the system does); workers notice at once when the parent dies. So a study may
be killed at any moment and be run again: what is finished stays, what was under way goes on from its checkpoint.

A worker that dies takes no more with it than the run it was at. That run is tried once more, by a new worker; runs that
had died together, on a GPU, one by one. Who dies again is recorded as failed, and the others go on. Want of memory is
no failure: such a run is tried again when the others are done and it has the machine to itself. Nor is the loss of a
machine of a cluster, which says nothing about the runs there.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...data import forget_cached
from ...store import Store
from .child import Death, Trouble, check_start
from .engine import Seat, engine_of
from .how import How
from .job import Job, record_death
from .loads import epochs_of, loads_of
from .shared import cache_of

RETRY_SECONDS = 0.5  # how often a job that another process is doing is looked at again
TRIES = 2  # of a run whose worker dies, and of a worker that dies before it has begun
LOSSES = 20  # of machines in the middle of one run: then it is the run, perhaps, that ends them


@dataclass(frozen=True)
class Event:
    """What happens to a job.

    `what` is "begun", "epoch" or "done", or "waits" where only so many epochs were to be done; "had" where another
    process has done it and "busy" where one is at it; "again" where it is tried once more because of `error`; "fatal"
    where nothing can go on.
    """

    what: str
    job: Job
    place: int = 0  # of the job among all that are under way: a bar on the screen
    epoch: int = 0
    latest: dict[str, float] | None = None  # the newest value of each curve
    error: str | None = None


class Workers:
    """Runs jobs; iterate over `events()` to watch them. `stop()` lets every worker write its checkpoints and end."""

    def __init__(self, jobs: list[Job], store: Store, how: How) -> None:
        self.store, self.how = store, how
        self.waiting: deque[list[Job]] = deque()
        self.alone: deque[Job] = deque()  # for when nothing else is under way
        self.without_memory: list[Job] = []  # not done, and not to be done here
        self.deaths: Counter[str] = Counter()  # by the key of the recipe that a worker was at
        self.losses: Counter[str] = Counter()  # of machines, by the same
        self.false_starts = 0
        self.stopping = False
        self.engine = engine_of(store, how)
        self.stop_words = self.engine.stop_words
        self.engine.check(jobs)
        self.pack_size = self.engine.pack_size(jobs)
        self.add(jobs)
        self.seats: list[Seat] = self.engine.seats(len(self.waiting))

    def add(self, jobs: list[Job]) -> None:
        """More to do, after what waits already; the longest first, so that none is begun when others have ended."""
        self.engine.check(jobs)
        self.waiting.extend(sorted(loads_of(jobs, self.how.device, self.pack_size), key=epochs_of, reverse=True))

    def stop(self) -> None:
        """Ask for a clean end; events go on until all workers have ended."""
        self.stopping = True
        for seat in self.seats:
            seat.stop()

    def events(self) -> Iterator[Event]:
        """What happens, until all jobs are done or stopped."""
        try:
            while True:
                yield from self._dispatch()
                if not self._anything():
                    break
                for seat in self.engine.ready([seat for seat in self.seats if seat.load], RETRY_SECONDS):
                    load = seat.load
                    for what, content in seat.receive():
                        yield from self._told(seat, load, what, content)
                    yield from self._dispatch()  # a seat that is free now need not wait until all others are heard
        finally:
            for seat in self.seats:
                seat.close()
        if self.stopping:
            return
        forget_cached(cache_of(self.store))
        if self.without_memory:
            yield Event("fatal", self.without_memory[0], error=self._memory_words())

    # -- what to do next ---------------------------------------------------------------------------------------------

    def _dispatch(self) -> Iterator[Event]:
        """Give idle workers something to do."""
        for seat in self.seats:
            while not self.stopping and not seat.load and (load := self._next_load()):
                for job in load:
                    if job.finished_in(self.store):
                        yield Event("had", job)
                missing = [job for job in load if not job.finished_in(self.store)]
                if missing:
                    seat.start(missing)

    def _next_load(self) -> list[Job] | None:
        if self.waiting:
            return self.waiting.popleft()
        if self.alone and not any(seat.load for seat in self.seats):
            return [self.alone.popleft()]
        return None

    def _anything(self) -> bool:
        """Whether anything is under way or to come."""
        return any(seat.load for seat in self.seats) or (bool(self.waiting or self.alone) and not self.stopping)

    # -- what was told -----------------------------------------------------------------------------------------------

    def _told(self, seat: Seat, load: list[Job], what: str, content: Any) -> Iterator[Event]:
        if what == "begun":
            yield from (Event("begun", job, seat.place(i)) for i, job in enumerate(load))
        elif what == "epoch":
            member, epoch, latest = content
            yield Event("epoch", load[member], seat.place(member), epoch, latest)
        elif what == "answer":
            yield from self._answered(seat, load, content)
        elif what == "died":
            yield from self._died(load, content)
        elif what == "lost":
            yield from self._lost(load, content)
        elif content.memory:
            seat.close()  # so that all it holds is free
            yield from self._short_of_memory(load, content)
        elif content.is_broken:
            seat.close()
            yield from self._died(load, Death(0, True, _first_line(content.text)))
        else:
            yield Event("fatal", load[0], error=content.text)

    def _answered(self, seat: Seat, load: list[Job], mine: list[bool] | None) -> Iterator[Event]:
        """`mine` says which jobs were ours to do; None where the worker was stopped."""
        for member, ours in enumerate(mine or ()):
            if not ours:
                self._look_again_later(load[member])
            done = "waits" if load[member].waits_in(self.store) else "done"
            yield Event(done if ours else "busy", load[member], seat.place(member))

    def _look_again_later(self, job: Job) -> None:
        if not self.stopping:
            self.waiting.append([job])
            if not any(seat.load for seat in self.seats):
                time.sleep(RETRY_SECONDS)

    def _died(self, load: list[Job], death: Death) -> Iterator[Event]:
        check_start(death)
        if not death.ready:  # no fault of the runs
            self.false_starts += 1
            if self.false_starts >= TRIES:
                yield Event("fatal", load[0], error=f"workers cannot start: {death}")
            self.waiting.appendleft(load)
            return
        for job in load:
            self.deaths[self._under_way(job)] += 1
        if len(load) == 1 and self.deaths[self._under_way(load[0])] >= TRIES:
            yield from self._give_up(load[0], death)
            return
        for job in reversed(load):
            if death.by_kill and len(load) == 1:
                self.alone.append(job)
            else:
                self.waiting.appendleft([job])
        yield from (Event("again", job, error=str(death)) for job in load)

    def _lost(self, load: list[Job], why: str) -> Iterator[Event]:
        """They go on elsewhere, from the checkpoints that reached the store."""
        for job in load:
            self.losses[self._under_way(job)] += 1
        if max(self.losses[self._under_way(job)] for job in load) >= LOSSES:
            yield from self._died(load, Death(0, True, f"{why}, {LOSSES} times"))
            return
        self.waiting.appendleft(load)
        yield from (Event("again", job, error=why) for job in load)

    def _under_way(self, job: Job) -> str:
        """The key of the recipe that a worker is at: a job's are done in their order."""
        return next((r.key for r in job.recipes if not self.store.has(r.key)), job.training.key)

    def _give_up(self, job: Job, death: Death) -> Iterator[Event]:
        """Record the run as failed, and go on with what of the job can be done without it."""
        key = self._under_way(job)
        with self.store.claim(job.training.key) as mine:
            for recipe in job.recipes:
                if mine and recipe.key == key and not self.store.has(key):
                    record_death(recipe, self.store, death, self.how.device)
        if job.finished_in(self.store):
            yield Event("done", job)
        else:
            self.waiting.appendleft([job])

    def _short_of_memory(self, load: list[Job], trouble: Trouble) -> Iterator[Event]:
        """Half as many side by side, then alone on the machine; what then has not enough is left undone."""
        if len(load) > 1:
            half = len(load) // 2
            self.waiting.extendleft([load[half:], load[:half]])
        elif any(seat.load for seat in self.seats) or self.waiting:
            self.alone.append(load[0])
        else:
            self.without_memory.append(load[0])
            return
        yield from (Event("again", job, error=f"memory ran out ({_first_line(trouble.text)})") for job in load)

    def _memory_words(self) -> str:
        count = len(self.without_memory)
        left = "1 run was" if count == 1 else f"{count} runs were"
        return (
            f"memory ran out: {left} not done, though nothing else was under way. All others are done and kept. A "
            "smaller batch_size or model needs less; the same command then does what is left"
        )


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0]
