"""The engine of one machine: worker processes, one thread each, a pipe each, and nothing shared but the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path

from ...core.progress import Progress
from ...store import Store
from ...store.underway import note_epoch
from ...train import Recipe, Stopped, choose_convolutions
from .bf16 import check_precision
from .child import Child, Message, leave, rested
from .how import How
from .images import look_at_images
from .job import Curves, Job, do, do_together, measured_pack_size
from .turn import its_turn, takes_turns


class LocalEngine:
    stop_words = "each run under way writes its checkpoint at the end of its epoch"

    def __init__(self, store: Store, how: How) -> None:
        self.store, self.how = store, how

    def look_at_images(self, recipe: Recipe, progress: Progress) -> None:
        look_at_images(recipe, self.store, self.how.device, progress)

    def check(self, jobs: Sequence[Job]) -> None:
        check_precision([job.training for job in jobs], self.how.device)

    def pack_size(self, jobs: Sequence[Job]) -> int:
        return measured_pack_size(jobs, self.store, self.how)

    def seats(self, loads: int) -> list[LocalSeat]:
        count = self.how.workers + takes_turns(self.how)  # one more, where the next load gets ready
        return [LocalSeat(number, self.store.path, self.how) for number in range(min(count, loads))]

    def ready(self, seats: Sequence[LocalSeat], seconds: float) -> list[LocalSeat]:
        sources = {source: seat for seat in seats for source in seat.sources}
        ready = wait(list(sources), timeout=seconds)
        return list({id(sources[r]): sources[r] for r in ready}.values())  # type: ignore[index]


class LocalSeat:
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
        return member if takes_turns(self.how) else self.number * 100 + member

    def start(self, load: list[Job]) -> None:
        if self.child is None or not self.child.fit:
            self.close()
            self.child = rested(self.how.device)
        self.load = load
        self.child.order(do_load, load, self.path, self.how)

    def stop(self) -> None:
        if self.child:
            self.child.stop()

    def receive(self) -> list[Message]:
        assert self.child is not None
        told = self.child.messages()
        if not self.child.busy:
            self.load = []
        return told

    def close(self) -> None:
        if self.child:
            leave(self.child)
        self.child = None


def do_load(load: list[Job], path: Path, how: How, pipe: Connection) -> list[bool] | None:
    """In a worker: do the jobs, and say whether each was ours to do; None when asked to stop."""
    store = Store(path)
    choose_convolutions(fast=how.fast)

    @contextmanager
    def turn() -> Iterator[None]:
        with its_turn(store, how, pipe.poll):
            pipe.send(("begun", None))
            yield

    def tell(member: int, epoch: int, curves: Curves) -> None:
        training = load[member].training
        note_epoch(store, training.key, epoch, training.plan.epochs)
        pipe.send(("epoch", (member, epoch, {name: values[-1] for name, values in curves.items()})))

    try:  # anything that comes meanwhile means stop
        if len(load) == 1:
            return [do(load[0], store, how, lambda epoch, curves: tell(0, epoch, curves), pipe.poll, turn)]
        return do_together(load, store, how, tell, pipe.poll, turn)
    except Stopped:
        return None
