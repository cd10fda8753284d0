"""Worker processes for a study's jobs: one thread each, a pipe each, and nothing shared but the store.

A worker that is killed frees its claim (the system does); workers notice at once when the parent dies. So a study may
be killed at any moment and be run again: what is finished stays, what was under way goes on from its checkpoint.
"""

from __future__ import annotations

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

from ..store import Store
from ..train import Stopped
from .runner import Job, do

RETRY_SECONDS = 0.5  # how often a job that another process is doing is looked at again


@dataclass(frozen=True)
class Event:
    """What a worker tells: `what` is "epoch", "done", "busy", "stopped" or "fatal"."""

    what: str
    job: Job
    worker: int
    epoch: int = 0
    latest: dict[str, float] | None = None  # the newest value of each curve
    error: str | None = None


class Workers:
    """Runs jobs; iterate over `events()` to watch them. `stop()` lets every worker write its checkpoint and end."""

    def __init__(self, jobs: list[Job], store: Store, device: torch.device, count: int) -> None:
        self.waiting = deque(jobs)
        self.store, self.device = store, device
        self.stopping = False
        self.seats = [_Seat(number, store.path, str(device)) for number in range(min(count, len(jobs)))]

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
                    if (event := seat.receive()) is None:
                        continue
                    if event.what == "busy":
                        self._look_again_later(event.job)
                    yield event
        finally:
            for seat in self.seats:
                seat.close()

    def _dispatch(self) -> bool:
        """Give idle workers something to do; whether anything is under way or to come."""
        for seat in self.seats:
            while not self.stopping and seat.job is None and self.waiting:
                job = self.waiting.popleft()
                if not job.finished_in(self.store):
                    seat.start(job)
        return any(seat.job for seat in self.seats) or (bool(self.waiting) and not self.stopping)

    def _ready(self) -> list[_Seat]:
        sources: dict[Any, _Seat] = {}
        for seat in self.seats:
            if seat.job is not None:
                sources[seat.pipe] = sources[seat.process.sentinel] = seat
        ready = wait(list(sources), timeout=RETRY_SECONDS)
        return list({id(sources[r]): sources[r] for r in ready}.values())

    def _look_again_later(self, job: Job) -> None:
        if not self.stopping:
            self.waiting.append(job)
            if all(s.job is None for s in self.seats):
                time.sleep(RETRY_SECONDS)


class _Seat:
    """The parent's end of one worker; a worker that dies is replaced by a new process for the next job."""

    pipe: Connection
    process: BaseProcess

    def __init__(self, number: int, path: Path, device: str) -> None:
        self.number, self.path, self.device = number, path, device
        self.job: Job | None = None
        self._spawn()

    def _spawn(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.path, self.device), daemon=True)
        self.process.start()
        theirs.close()

    def start(self, job: Job) -> None:
        if not self.process.is_alive():
            self._spawn()
        self.job = job
        self.send(job)

    def send(self, message: Job | None) -> None:
        with suppress(OSError):  # it died; `receive` will tell
            self.pipe.send(message)

    def receive(self) -> Event | None:
        """The next event of this worker; its death in the middle of a job is one too."""
        assert self.job is not None
        job = self.job
        try:
            message = self.pipe.recv() if self.pipe.poll() else None
        except (EOFError, OSError):
            message = None
        if message is None:
            if self.process.is_alive():
                return None
            self.job = None
            died = f"a worker process died (exit code {self.process.exitcode}); not enough memory, perhaps"
            return Event("fatal", job, self.number, error=died)
        what, epoch, latest, error = message
        if what != "epoch":
            self.job = None
        return Event(what, job, self.number, epoch, latest, error)

    def close(self) -> None:
        self.pipe.close()
        self.process.join(timeout=5)
        if self.process.is_alive():
            self.process.kill()


def _work(pipe: Connection, path: Path, device_name: str) -> None:
    """A worker's life: receive a job, do it, tell; end when the parent says so or is gone."""
    signal(SIGINT, SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides what it means
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    store, device = Store(path), torch.device(device_name)

    def tell(epoch: int, curves: dict[str, list[float]]) -> None:
        pipe.send(("epoch", epoch, {name: values[-1] for name, values in curves.items()}, None))

    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        if job is None:
            return
        try:
            mine = do(job, store, device, tell, pipe.poll)  # anything that comes meanwhile means stop
            pipe.send(("done" if mine else "busy", 0, None, None))
        except Stopped:
            pipe.send(("stopped", 0, None, None))
        except Exception as error:
            pipe.send(("fatal", 0, None, str(error) or repr(error)))


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def core_count() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
