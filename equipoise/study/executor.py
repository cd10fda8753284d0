"""Worker processes for a study's jobs: one thread each, a pipe each, and nothing shared but the store.

A worker that is killed frees its claims (the system does); workers notice at once when the parent dies. So a study may
be killed at any moment and be run again: what is finished stays, what was under way goes on from its checkpoint.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from typing import Any

import torch

from ..data import forget_cached
from ..store import Store
from ..store.underway import note_epoch
from ..train import Stopped, choose_convolutions
from .engine import settings
from .runner import Curves, Job, cache_of, do, do_together, loads_of, measured

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
RETRY_SECONDS = 0.5  # how often a job that another process is doing is looked at again


@dataclass(frozen=True)
class Event:
    """What a worker tells of a job: `what` is "epoch", "done", "busy" or "fatal"."""

    what: str
    job: Job
    place: int  # of the job among all that are under way: a bar on the screen
    epoch: int = 0
    latest: dict[str, float] | None = None  # the newest value of each curve
    error: str | None = None


class Workers:
    """Runs jobs; iterate over `events()` to watch them. `stop()` lets every worker write its checkpoints and end."""

    def __init__(self, jobs: list[Job], store: Store, device: torch.device, count: int) -> None:
        self.store, self.device = store, device
        self.pack_size = measured(jobs, store, device)
        self.waiting: deque[list[Job]] = deque()
        self.add(jobs)
        self.stopping = False
        self.seats = [_Seat(number, store.path, str(device)) for number in range(min(count, len(self.waiting)))]

    def add(self, jobs: list[Job]) -> None:
        """More to do, after what waits already."""
        self.waiting.extend(loads_of(jobs, self.device, self.pack_size))

    def stop(self) -> None:
        """Ask for a clean end; events go on until all workers have ended."""
        self.stopping = True
        for seat in self.seats:
            seat.send(None)

    def events(self) -> Iterator[Event]:
        """What happens, until all jobs are done or stopped."""
        try:
            while self._dispatch():
                for seat in self._ready():
                    for event in seat.receive():
                        if event.what == "busy":
                            self._look_again_later(event.job)
                        yield event
        finally:
            for seat in self.seats:
                seat.close()
        if not self.stopping:
            forget_cached(cache_of(self.store))

    def _dispatch(self) -> bool:
        """Give idle workers something to do; whether anything is under way or to come."""
        for seat in self.seats:
            while not self.stopping and not seat.load and self.waiting:
                load = [job for job in self.waiting.popleft() if not job.finished_in(self.store)]
                if load:
                    seat.start(load)
        return any(seat.load for seat in self.seats) or (bool(self.waiting) and not self.stopping)

    def _ready(self) -> list[_Seat]:
        sources: dict[Any, _Seat] = {}
        for seat in self.seats:
            if seat.load:
                sources[seat.pipe] = sources[seat.process.sentinel] = seat
        ready = wait(list(sources), timeout=RETRY_SECONDS)
        return list({id(sources[r]): sources[r] for r in ready}.values())

    def _look_again_later(self, job: Job) -> None:
        if not self.stopping:
            self.waiting.append([job])
            if not any(seat.load for seat in self.seats):
                time.sleep(RETRY_SECONDS)


class _Seat:
    """The parent's end of one worker; a worker that dies is replaced by a new process for the next load."""

    pipe: Connection
    process: BaseProcess

    def __init__(self, number: int, path: Path, device: str) -> None:
        self.number, self.path, self.device = number, path, device
        self.load: list[Job] = []
        self._spawn()

    def _spawn(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        # a daemon may have no processes of its own, which a GPU's worker needs to read images ahead
        daemon = self.device == "cpu"
        self.process = context.Process(target=_work, args=(theirs, self.path, self.device), daemon=daemon)
        self.process.start()
        theirs.close()

    def start(self, load: list[Job]) -> None:
        if not self.process.is_alive():
            self._spawn()
        self.load = load
        self.send(load)

    def send(self, message: list[Job] | None) -> None:
        with suppress(OSError):  # it died; `receive` will tell
            self.pipe.send(message)

    def receive(self) -> list[Event]:
        """What this worker has told since the last time; its death in the middle of a load is told too."""
        events: list[Event] = []
        alive = self.process.is_alive()  # asked first: what it sent before it died is still in the pipe
        with suppress(EOFError, OSError):
            while self.load and self.pipe.poll():
                events += self._told(*self.pipe.recv())
        if self.load and not alive:
            died = f"a worker process died (exit code {self.process.exitcode}); not enough memory, perhaps"
            events += self._told("fatal", 0, 0, None, died)
        return events

    def _told(
        self, what: str, member: int, epoch: int, latest: dict[str, float] | None, error: str | None
    ) -> list[Event]:
        if what == "idle":
            self.load = []
            return []
        event = Event(what, self.load[member], self.number * 100 + member, epoch, latest, error)
        if what == "fatal":
            self.load = []
        return [event]

    def close(self) -> None:
        self.pipe.close()
        self.process.join(timeout=5)
        if self.process.is_alive():
            self.process.kill()


def _work(pipe: Connection, path: Path, device_name: str) -> None:
    """A worker's life: receive a load, do it, tell; end when the parent says so or is gone."""
    signal(SIGINT, SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides what it means
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    keep_freed_memory()
    store, device = Store(path), torch.device(device_name)
    choose_convolutions(fast=settings(store).get("fast", False))

    def tell(member: int, epoch: int, curves: Curves) -> None:
        training = load[member].training
        note_epoch(store, training.key, epoch, training.plan.epochs)
        pipe.send(("epoch", member, epoch, {name: values[-1] for name, values in curves.items()}, None))

    with suppress(EOFError, OSError):
        while (load := pipe.recv()) is not None:
            try:
                # anything that comes meanwhile means stop
                if len(load) == 1:
                    mine = [do(load[0], store, device, lambda epoch, curves: tell(0, epoch, curves), pipe.poll)]
                else:
                    mine = do_together(load, store, device, tell, pipe.poll)
                for member, ours in enumerate(mine):
                    pipe.send(("done" if ours else "busy", member, 0, None, None))
            except Stopped:
                pass
            except Exception as error:
                pipe.send(("fatal", 0, 0, None, str(error) or repr(error)))
            pipe.send(("idle", 0, 0, None, None))


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def keep_freed_memory() -> None:
    """Ask the C library not to give large blocks back: each step wants them again, and fresh pages cost time."""
    with suppress(OSError, AttributeError):  # another system, another library
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 2**30)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def core_count() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
