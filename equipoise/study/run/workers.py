"""Worker processes for a study's jobs: one thread each, a pipe each, and nothing shared but the store.

A worker that is killed frees its claims (the system does); workers notice at once when the parent dies. So a study may
be killed at any moment and be run again: what is finished stays, what was under way goes on from its checkpoint.

A worker that dies takes no more with it than the run it was at. That run is tried once more, by a new worker; runs that
had died together, on a GPU, one by one. Who dies again is recorded as failed, and the others go on. Want of memory is
no failure: such a run is tried again when the others are done and it has the machine to itself.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ...data import forget_cached
from ...store import Store
from ...store.underway import note_epoch
from ...train import Stopped, choose_convolutions
from .bf16 import check_precision
from .child import Child, Death, Trouble, check_start, rested
from .how import How
from .job import Curves, Job, cache_of, do, do_together, loads_of, measured_pack_size, record_death

RETRY_SECONDS = 0.5  # how often a job that another process is doing is looked at again
TRIES = 2  # of a run whose worker dies, and of a worker that dies before it has begun


@dataclass(frozen=True)
class Event:
    """What happens to a job.

    `what` is "begun", "epoch" or "done"; "had" where another process has done it and "busy" where one is at it; "again"
    where it is tried once more because of `error`; "fatal" where nothing can go on.
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
        self.false_starts = 0
        self.stopping = False
        check_precision([job.training for job in jobs], how.device)
        self.pack_size = measured_pack_size(jobs, store, how)
        self.add(jobs)
        self.seats = [_Seat(number, store.path, how) for number in range(min(how.workers, len(self.waiting)))]

    def add(self, jobs: list[Job]) -> None:
        """More to do, after what waits already."""
        check_precision([job.training for job in jobs], self.how.device)
        self.waiting.extend(loads_of(jobs, self.how.device, self.pack_size))

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
                for seat in self._ready():
                    load = seat.load
                    for what, content in seat.receive():
                        yield from self._told(seat, load, what, content)
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

    def _ready(self) -> list[_Seat]:
        sources = {source: seat for seat in self.seats if seat.load for source in seat.sources}
        ready = wait(list(sources), timeout=RETRY_SECONDS)
        return list({id(sources[r]): sources[r] for r in ready}.values())  # type: ignore[index]

    # -- what was told -----------------------------------------------------------------------------------------------

    def _told(self, seat: _Seat, load: list[Job], what: str, content: Any) -> Iterator[Event]:
        if what == "begun":
            yield from (Event("begun", job, seat.place(i)) for i, job in enumerate(load))
        elif what == "epoch":
            member, epoch, latest = content
            yield Event("epoch", load[member], seat.place(member), epoch, latest)
        elif what == "answer":
            yield from self._answered(seat, load, content)
        elif what == "died":
            yield from self._died(load, content)
        elif content.memory:
            seat.close()  # so that all it holds is free
            yield from self._short_of_memory(load, content)
        elif content.is_broken:
            seat.close()
            yield from self._died(load, Death(0, True, _first_line(content.text)))
        else:
            yield Event("fatal", load[0], error=content.text)

    def _answered(self, seat: _Seat, load: list[Job], mine: list[bool] | None) -> Iterator[Event]:
        """`mine` says which jobs were ours to do; None where the worker was stopped."""
        for member, ours in enumerate(mine or ()):
            if not ours:
                self._look_again_later(load[member])
            yield Event("done" if ours else "busy", load[member], seat.place(member))

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


class _Seat:
    """A place for one worker; one that has died is replaced for the next load."""

    def __init__(self, number: int, path: Path, how: How) -> None:
        self.number, self.path, self.how = number, path, how
        self.load: list[Job] = []
        self.child: Child | None = None

    @property
    def sources(self) -> list[Connection | int]:
        """What to wait for."""
        return [self.child.pipe, self.child.process.sentinel] if self.child else []

    def place(self, member: int) -> int:
        return self.number * 100 + member

    def start(self, load: list[Job]) -> None:
        if self.child is None or not self.child.fit:
            self.close()
            self.child = rested(self.how.device)
        self.load = load
        self.child.order(_do_load, load, self.path, self.how)

    def stop(self) -> None:
        if self.child:
            self.child.stop()

    def receive(self) -> list[tuple[str, Any]]:
        """What this worker has told since the last time; after its last word it has no load."""
        assert self.child is not None
        told = self.child.messages()
        if not self.child.busy:
            self.load = []
        return told

    def close(self) -> None:
        if self.child:
            self.child.close()
        self.child = None


def _do_load(load: list[Job], path: Path, how: How, pipe: Connection) -> list[bool] | None:
    """In a worker: do the jobs, and say whether each was ours to do; None when asked to stop."""
    store = Store(path)
    choose_convolutions(fast=how.fast)
    pipe.send(("begun", None))

    def tell(member: int, epoch: int, curves: Curves) -> None:
        training = load[member].training
        note_epoch(store, training.key, epoch, training.plan.epochs)
        pipe.send(("epoch", (member, epoch, {name: values[-1] for name, values in curves.items()})))

    try:  # anything that comes meanwhile means stop
        if len(load) == 1:
            return [do(load[0], store, how, lambda epoch, curves: tell(0, epoch, curves), pipe.poll)]
        return do_together(load, store, how, tell, pipe.poll)
    except Stopped:
        return None


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0]
