"""SIGKILL at random moments: the same command again ends as if nothing had happened, and nothing is done twice.

A victim is a study in a folder of its own: run, tuned, run in rounds, reported or analyzed. It is killed several times
(the parent alone, one worker, or all of its processes; at any time, or while something is being written), then the
command is left to end, and what is in the folder is compared with an undisturbed one: metrics, curves, weights and
kept outputs to the bit. A record, once there, keeps its inode and its time: it is never trained again.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from .command import TRACE, start
from .contents import contents, differences
from .pool import Outcome, Tally, numbers_of
from .reference import PATIENCE
from .scenarios import Scenario, measure, scenarios_of
from .warm import FRESH, Forked, Warm

Process = subprocess.Popen[bytes] | Forked

MOST_KILLS = 10  # of one victim
TARGETS = ("parent", "all", "worker")
PREPARATION = 0.3  # of the time, in which undisturbed studies may begin: with little time fewer commands are killed


def attack(tally: Tally, folder: Path, jobs: int, device: str, deadline: float) -> None:
    """Kill victims, `jobs` at a time, until as many kills as asked for are done or the time is over."""
    began = time.monotonic()
    latest = began + PREPARATION * (deadline - began)
    warm = Warm() if device == "cpu" else None  # a process that has used a GPU cannot fork
    with ThreadPoolExecutor(jobs) as pool:
        measured = pool.map(partial(measure, folder, warm, latest, deadline), scenarios_of(folder, device))
        scenarios = [scenario for scenario in measured if scenario is not None]
    if not scenarios:
        print(f"no time to kill anything: a study undisturbed takes more than {time.monotonic() - began:.0f} s")
        return
    # what is under way is left time to end; a victim that has not ended then is not counted
    stop = deadline - min(3 * max(s.seconds for s in scenarios), 0.4 * (deadline - began))
    budget, numbers = _Budget(tally.asked, stop), count()
    with ThreadPoolExecutor(jobs) as pool:
        hunt = partial(_hunt, tally, scenarios, folder, warm, budget, numbers, deadline)
        for each in [pool.submit(hunt) for _ in range(jobs)]:
            each.result()
    tally.seconds = time.monotonic() - began


def _hunt(
    tally: Tally,
    scenarios: list[Scenario],
    folder: Path,
    warm: Warm | None,
    budget: _Budget,
    numbers: Iterator[int],
    deadline: float,
) -> None:
    """One victim after the other."""
    while budget.left():
        number = next(numbers)
        rng = numbers_of(tally.name, tally.seed, number)
        scenario = rng.choices(scenarios, [s.likely for s in scenarios])[0]
        victim = _Victim(scenario, folder / f"victim{number}", rng, warm, deadline)
        try:
            problem = victim.live(budget)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        finally:
            victim.bury()
        if problem == UNFINISHED:
            continue
        with budget.lock:
            good = len(victim.kills) - (problem is not None)
            for kill in victim.kills[: max(0, good)]:
                tally.add(number, Outcome("ok", kill))
            if problem is not None:
                end = "traceback" if TRACE in problem else "hang" if "did not end" in problem else "silent"
                told = f"{scenario.name}, killed {', '.join(victim.kills)}: {problem}"
                tally.add(number, Outcome(end, told), again="the moment of a kill is the machine's; kill it again")


class _Budget:
    """Kills that may still be given out, by any thread, until `stop`."""

    def __init__(self, kills: int, stop: float) -> None:
        self.kills, self.stop, self.lock = kills, stop, threading.Lock()

    def left(self) -> bool:
        return self.kills > 0 and time.monotonic() < self.stop

    def take(self) -> bool:
        with self.lock:
            if not self.left():
                return False
            self.kills -= 1
            return True

    def give_back(self) -> None:
        with self.lock:
            self.kills += 1


UNFINISHED = "the time was over before it had ended"


class _Victim:
    """One folder, killed and started again until its command has ended."""

    def __init__(
        self, scenario: Scenario, folder: Path, rng: random.Random, warm: Warm | None, deadline: float
    ) -> None:
        self.scenario, self.folder, self.rng, self.warm, self.deadline = scenario, folder, rng, warm, deadline
        self.kills: list[str] = []
        self.groups: list[int] = []
        self.seen: dict[str, tuple[int, int]] = {}

    def live(self, budget: _Budget) -> str | None:
        """What went wrong, if anything did."""
        self.folder.mkdir(parents=True)
        self.scenario.lay_out(self.folder)
        planned = self.rng.randint(2, MOST_KILLS)
        while len(self.kills) < planned and budget.take():
            if not self._struck():
                budget.give_back()
                break
            if lost := self._lost():
                return lost
        return self._ended()

    def _start(self, *options: str) -> Process:
        begin = start if self.warm is None or self.rng.random() < FRESH else self.warm.start
        process = begin((*self.scenario.command, *options), self.folder, self.folder / "log.txt")
        self.groups.append(process.pid)
        return process

    def _struck(self) -> bool:
        """Start the command and kill it, or one of its workers; False if it ended before."""
        began, process, target = time.monotonic(), self._start(), self.rng.choice(TARGETS)
        writing = self.rng.random() < 0.4
        if writing:
            is_time = self._wait_for_writing(process, self.rng.randrange(4))
        else:
            is_time = self._sleep(process, self.rng.uniform(0.1, 1.0) * self.scenario.seconds)
        hit = self._kill(process, target) if is_time else None
        if hit is None:
            self._wait(process)
            if not self.kills:  # the machine has become faster: the moments of later kills come sooner
                self.scenario.seconds = min(self.scenario.seconds, time.monotonic() - began)
            return False
        afresh = ", started afresh" if isinstance(process, subprocess.Popen) else ""
        self.kills.append(f"{self.scenario.name}: {hit}{', writing' if writing else ''}{afresh}")
        return True

    def _kill(self, process: Process, target: str) -> str | None:
        """What of `TARGETS` was hit; None where it had ended before."""
        workers = _workers(process.pid)
        if target == "worker" and workers:
            try:
                os.kill(self.rng.choice(workers), signal.SIGKILL)
            except ProcessLookupError:
                return None
            self._wait(process)
            return target
        hit = "all" if target == "all" else "parent"
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL) if hit == "all" else process.kill()
        return hit if process.wait() == -signal.SIGKILL else None

    def _wait(self, process: Process) -> None:
        """Let it end by itself, if it does in time."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(1.0, min(PATIENCE, self.deadline - time.monotonic())))
        process.kill()
        process.wait()

    def _sleep(self, process: Process, seconds: float) -> bool:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def _wait_for_writing(self, process: Process, skip: int) -> bool:
        """Until some file is half written, not for the first time; False if the command ends before."""
        before: set[str] = set()
        while process.poll() is None and time.monotonic() < self.deadline:
            now = set(_half_written(self.folder / "out"))
            if now - before:
                if skip == 0:
                    return True
                skip -= 1
            before = now
            time.sleep(0.001)
        return False

    def _lost(self) -> str | None:
        """What was there and is not, or is another file now."""
        now = _kept(self.folder / "out")
        wrong = [name for name, mark in self.seen.items() if now.get(name) != mark]
        self.seen = now
        return f"lost or done again: {', '.join(wrong[:5])}" if wrong else None

    def _ended(self) -> str | None:
        """Let the command end, and compare."""
        log = self.folder / "log.txt"
        for _ in range(3):
            if time.monotonic() > self.deadline:
                return UNFINISHED
            start = log.stat().st_size if log.exists() else 0
            process = self._start(*(["--retry"] if self.scenario.command[0] == "run" else []))
            try:
                code = process.wait(max(1.0, min(PATIENCE, self.deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                if time.monotonic() > self.deadline:
                    return UNFINISHED
                process.send_signal(signal.SIGABRT)  # Python then tells where each of its threads is
                process.wait()
                return f"the command did not end: {log.read_bytes()[start:].decode(errors='replace')[-6000:]}"
            said = log.read_bytes()[start:].decode(errors="replace")
            if code == 0:
                break
        else:
            return f"the same command ends with {code}: {said[-2000:]}"
        if TRACE in said:
            return said[-3000:]
        return self._lost() or differences(contents(self.folder / "out"), self.scenario.whole)

    def bury(self) -> None:
        for group in self.groups:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def _workers(pid: int) -> list[int]:
    """The worker processes of a command, as the system has them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == pid and b"resource_tracker" not in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def _half_written(out: Path) -> Iterator[str]:
    """Files on their way: what is written aside, Optuna's journal."""
    for folder in (out, out / "unfinished", *(out / "unfinished").glob("*"), out / "analysis"):
        with suppress(OSError):
            for entry in os.scandir(folder):
                if entry.name.startswith(".") or entry.name.endswith((".result", ".new", ".part", "-journal")):
                    yield entry.path


def _kept(out: Path) -> dict[str, tuple[int, int]]:
    """Everything that must not be done again: its inode and time."""
    files = [*out.glob("runs/*/record.json"), *out.glob("analysis/*.json")]
    return {str(path.relative_to(out)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}
