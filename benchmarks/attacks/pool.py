"""Runs cases in child processes, where they may hang, crash or eat memory, and counts how each of them ended.

An attack is prepared once; its cases run in forked children that inherit what was prepared. A case depends on its
number and the seed alone, so `--only NUMBER` runs it again.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

MEMORY = 3 * 2**30  # bytes that a case may take beyond what its process has
RECYCLED = 300  # cases of one child, so that caches and leaks end with it
KEPT = 20  # offending cases that are told in full

# ok: done, or refused in words. silent: another number or other weights than the undamaged ones, and nobody was told.
ENDS = ("ok", "traceback", "crash", "hang", "silent")


@dataclass(frozen=True)
class Outcome:
    """How a case ended (one of `ENDS`), and what is to be known of it."""

    end: str
    note: str = ""


OK = Outcome("ok")
Case = Callable[[random.Random, Path], Outcome]  # its random numbers and an empty folder of its own


@dataclass
class Tally:
    """What an attack came to."""

    name: str
    asked: int
    seed: int
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENDS, 0))
    notes: dict[str, int] = field(default_factory=dict)  # what the cases that ended well were, where they say so
    offending: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        return sum(self.ends.values())

    @property
    def wrong(self) -> int:
        return self.cases - self.ends["ok"]

    def add(self, number: int, outcome: Outcome, again: str | None = None) -> None:
        self.ends[outcome.end] += 1
        if outcome.end == "ok":
            if outcome.note:
                self.notes[outcome.note] = self.notes.get(outcome.note, 0) + 1
        elif len(self.offending) < KEPT:
            again = again or f"python benchmarks/attack.py {self.name} --seed {self.seed} --only {number}"
            self.offending.append({"case": number, "end": outcome.end, "note": outcome.note, "again": again})


def numbers_of(name: str, seed: int, number: int) -> random.Random:
    """The random numbers of one case."""
    return random.Random(f"{name} {seed} {number}")


@contextmanager
def empty_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ended(case: Case, rng: random.Random, folder: Path) -> Outcome:
    """Run a case here; an exception that it lets through is what a user would see as a traceback."""
    try:
        return case(rng, folder)
    except Exception as error:
        return Outcome("traceback", "".join(traceback.format_exception(error)[-8:])[-4000:])


def run_cases(tally: Tally, case: Case, jobs: int, limit: float, deadline: float) -> None:
    """Cases 0, 1, …, `jobs` at a time, until all that were asked for are done or `deadline` (monotonic) has come."""
    began, todo = time.monotonic(), iter(range(tally.asked))
    seats = [_Seat(tally, case) for _ in range(min(jobs, tally.asked))]
    try:
        while True:
            for seat in seats:
                if seat.number is None and time.monotonic() < deadline and (number := next(todo, None)) is not None:
                    seat.start(number)
            busy = [seat for seat in seats if seat.number is not None]
            if not busy:
                break
            wait([s for seat in busy for s in (seat.pipe, seat.process.sentinel)], timeout=0.5)
            for seat in busy:
                seat.look(limit)
    finally:
        for seat in seats:
            seat.end()
    tally.seconds = time.monotonic() - began


class _Seat:
    """One child at a time; one that hangs is killed with all its processes, and another takes its place."""

    def __init__(self, tally: Tally, case: Case) -> None:
        self.tally, self.case = tally, case
        self.number: int | None = None
        self._fork()

    def _fork(self) -> None:
        context, self.done = get_context("fork"), 0
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_live, args=(theirs, self.case, self.tally.name, self.tally.seed))
        self.process.start()
        theirs.close()

    def start(self, number: int) -> None:
        if self.done >= RECYCLED or not self.process.is_alive():
            self.end()
            self._fork()
        self.number, self.since = number, time.monotonic()
        self.pipe.send(number)

    def look(self, limit: float) -> None:
        """See whether the case has ended."""
        alive, outcome = self.process.is_alive(), None
        with suppress(EOFError, OSError):
            if self.pipe.poll():
                outcome = self.pipe.recv()
        if outcome is None and not alive:
            outcome = Outcome("crash", f"the process ended with exit code {self.process.exitcode}")
        if outcome is None and time.monotonic() - self.since > limit:
            outcome = Outcome("hang", f"it had not ended after {limit:.0f} s")
            self.end()
        if outcome is not None:
            assert self.number is not None
            self.tally.add(self.number, outcome)
            self.number, self.done = None, self.done + 1

    def end(self) -> None:
        """Kill the child and whatever it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.join()
        self.pipe.close()


def _live(pipe: Connection, case: Case, name: str, seed: int) -> None:
    os.setsid()
    _silence()
    _limit_memory()
    with suppress(EOFError):
        while True:
            number = pipe.recv()
            with empty_folder() as folder:
                os.chdir(folder)
                outcome = ended(case, numbers_of(name, seed, number), folder)
                os.chdir("/")
            pipe.send(outcome)


def _silence() -> None:
    """Nothing of a case's output reaches the terminal, also not that of C libraries."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def _limit_memory() -> None:
    """Memory of one's own (not mapped files, of which a CUDA build has many gigabytes), and no core files."""
    status = Path("/proc/self/status").read_text()
    has = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (has + MEMORY, has + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
