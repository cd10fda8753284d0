"""What a study costs on many machines, on paper: 1, 8 and 64 GPUs, and a thousand workers that die now and then.

    python benchmarks/simulate_cluster.py [--studies 20] [SECTION …]

Sections: costs, short, long, driver. Prints Markdown tables; docs/scaling.md has them, and says what is measured and
what is assumed.

Simulated is what `equipoise run --engine ray` does. Loads with more epochs begin first. The driver hands them out one
after the other. A load whose worker dies goes on elsewhere, from its last checkpoint. Near the end, where workers are
idle, the slowest load that takes more than 1.5 times the usual time for an epoch is given to a second worker, and the
first to end wins. How much longer than usual an attempt takes is drawn from the 32 trainings in
docs/results/records/demo.jsonl: the same work on a machine that other jobs shared.
"""

from __future__ import annotations

import heapq
import json
import math
import statistics
from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from sections import print_sections

from equipoise.study.run.cluster.engine import FEWEST, LOOK_SECONDS, STRAGGLING
from equipoise.study.run.workers import LOSSES
from equipoise.train.team import Team

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "records" / "demo.jsonl"
HOUR = 3600.0


def measured_paces() -> tuple[float, ...]:
    """Seconds of each training over their median."""
    rows = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    seconds = np.array([row["seconds"] for row in rows if row.get("seconds", 0) > 1])  # the rest are corrections
    return tuple((seconds / np.median(seconds)).tolist())


@dataclass(frozen=True)
class Setting:
    """A study and the machines that it is run on; times are in seconds."""

    workers: int
    loads: int
    load_seconds: float  # of a usual load, once it has begun
    epochs: int = 60
    long_share: float = 0.05  # of loads with twice the epochs
    paces: tuple[float, ...] = (1.0,)  # how much longer than usual an attempt takes: one is drawn
    start_up: float = 10.0  # of a new worker, from its first load's arrival to the first step
    warm_start: float = 0.8  # of one that has trained before
    dispatch: float = 0.02  # of the driver, for each load
    deaths_per_hour: float = 0.0  # of a worker
    replacement: float = 120.0  # until there is another in the place of one that died
    longest_first: bool = True
    doubles: bool = True  # whether stragglers are given to a second worker


@dataclass(eq=False)
class Load:
    epochs: int
    done: float = 0.0  # epochs, as its last checkpoint has it
    losses: int = 0
    attempts: list[Attempt] = field(default_factory=list)


@dataclass(eq=False)
class Attempt:
    load: Load
    began: float
    trains_from: float  # when its first step comes
    first_epoch: float
    epoch_seconds: float

    @property
    def end(self) -> float:
        return self.trains_from + (self.load.epochs - self.first_epoch) * self.epoch_seconds

    def checkpointed(self, now: float) -> float:
        """Epochs that its last checkpoint has."""
        done = self.first_epoch + max(0.0, now - self.trains_from) / self.epoch_seconds
        every = Team.checkpoint_epochs
        return max(self.first_epoch, done // every * every)


@dataclass
class Outcome:
    seconds: float = 0.0
    wasted: float = 0.0  # worker-seconds in attempts that came to nothing, or were done again
    deaths: int = 0
    doubled: int = 0
    failed: int = 0


class Simulation:
    """One study, event by event."""

    def __init__(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting, self.rng = setting, rng
        self.outcome = Outcome()
        self.idle = setting.workers
        self.fresh = setting.workers  # of the idle ones, those that have trained nothing yet
        self.driver_free = 0.0
        self.paces: list[float] = []  # seconds per epoch of each load that is done, in order of size
        self.events: list[tuple[float, int, str, Any]] = []
        self.order = count()
        self.next_look = 0.0
        long = rng.random(setting.loads) < setting.long_share
        loads = [Load(setting.epochs * (2 if is_long else 1)) for is_long in long]
        if setting.longest_first:
            loads.sort(key=lambda load: -load.epochs)
        self.waiting, self.left = deque(loads), len(loads)
        self.busy: dict[Load, None] = {}

    def run(self) -> Outcome:
        self._hand_out(0.0)
        while self.left:
            now, _, what, content = heapq.heappop(self.events)
            getattr(self, f"_{what}")(now, content)
            self._hand_out(now)
            self._look_for_stragglers(now)
            self.outcome.seconds = now
        return self.outcome

    def _at(self, when: float, what: str, content: Any = None) -> None:
        heapq.heappush(self.events, (when, next(self.order), what, content))

    def _hand_out(self, now: float) -> None:
        while self.waiting and self.idle:
            self._begin(self.waiting.popleft(), now)

    def _begin(self, load: Load, now: float) -> None:
        setting = self.setting
        is_fresh = self.idle == self.fresh  # warm ones are taken first
        self.idle, self.fresh = self.idle - 1, self.fresh - is_fresh
        self.driver_free = began = max(now, self.driver_free) + setting.dispatch
        trains_from = began + (setting.start_up if is_fresh else setting.warm_start)
        pace = setting.paces[self.rng.integers(len(setting.paces))]
        attempt = Attempt(load, began, trains_from, load.done, pace * setting.load_seconds / setting.epochs)
        load.attempts.append(attempt)
        self.busy[load] = None
        rate = setting.deaths_per_hour / HOUR
        dies = began + self.rng.exponential(1 / rate) if rate else math.inf
        self._at(*((dies, "death") if dies < attempt.end else (attempt.end, "end")), attempt)

    def _end(self, now: float, attempt: Attempt) -> None:
        load = attempt.load
        if attempt not in load.attempts:
            return  # another was first
        insort(self.paces, (now - attempt.began) / load.epochs)
        self.outcome.wasted += sum(now - other.began for other in load.attempts if other is not attempt)
        self.idle += len(load.attempts)
        self._over(load)

    def _death(self, now: float, attempt: Attempt) -> None:
        load = attempt.load
        if attempt not in load.attempts:
            return
        load.attempts.remove(attempt)
        self.outcome.deaths += 1
        self._at(now + self.setting.replacement, "replaced")
        kept = max(load.done, attempt.checkpointed(now))
        self.outcome.wasted += now - attempt.began - (kept - attempt.first_epoch) * attempt.epoch_seconds
        load.done, load.losses = kept, load.losses + 1
        if load.attempts:
            return
        if load.losses >= LOSSES:
            self.outcome.failed += 1
            self._over(load)
        else:
            del self.busy[load]
            self.waiting.appendleft(load)

    def _over(self, load: Load) -> None:
        load.attempts.clear()
        del self.busy[load]
        self.left -= 1

    def _replaced(self, now: float, _: Any) -> None:
        self.idle, self.fresh = self.idle + 1, self.fresh + 1

    def _look(self, now: float, _: Any) -> None:
        """`run` looks after every event."""

    def _look_for_stragglers(self, now: float) -> None:
        """As `RayEngine` does, once a second, while workers are idle because nothing waits."""
        if not (self.setting.doubles and self.idle and not self.waiting and len(self.paces) >= FEWEST):
            return
        if now < self.next_look:
            return
        usual = self.paces[len(self.paces) // 2]
        single = [load.attempts[0] for load in self.busy if len(load.attempts) == 1]
        if not single:
            return
        slow = [one for one in single if now - one.began > STRAGGLING * usual * one.load.epochs]
        if slow:
            worst = max(slow, key=lambda one: (now - one.began) / one.load.epochs)
            worst.load.done = max(worst.load.done, worst.checkpointed(now))
            self.outcome.doubled += 1
            self._begin(worst.load, now)
        crossing = min(one.began + STRAGGLING * usual * one.load.epochs for one in single)
        self.next_look = now + LOOK_SECONDS if len(slow) > 1 else max(now + LOOK_SECONDS, crossing)
        self._at(self.next_look, "look")


def outcomes(setting: Setting, times: int) -> list[Outcome]:
    return [Simulation(setting, np.random.default_rng(seed)).run() for seed in range(times)]


def ideal(setting: Setting) -> float:
    """Seconds if work could be divided at will, nothing died, and nothing but training took time."""
    work = setting.loads * (1 + setting.long_share) * setting.load_seconds * float(np.mean(setting.paces))
    return work / setting.workers


# -- the tables ------------------------------------------------------------------------------------------------------


def rows_of(base: Setting, rates: tuple[float, ...], times: int) -> Iterator[str]:
    yield (
        "| a worker dies | begins first | stragglers are tried | × ideal, equal times | × ideal, times as measured | "
        "wasted | deaths | tried twice | failed |"
    )
    yield "|---|---|---|---:|---:|---:|---:|---:|---:|"
    for rate in rates:
        for first, doubles in ((True, True), (True, False), (False, True)):
            setting = replace(base, deaths_per_hour=rate, longest_first=first, doubles=doubles)
            _, equal = rated(setting, times)
            found, uneven = rated(replace(setting, paces=measured_paces()), times)
            wasted = np.mean([one.wasted / (one.seconds * setting.workers) for one in found])
            means = [np.mean([getattr(one, name) for one in found]) for name in ("deaths", "doubled", "failed")]
            yield (
                f"| {said(rate)} | {'longest' if first else 'any'} | {'twice' if doubles else 'once'} | {equal} | "
                f"{uneven} | {wasted:.1%} | {means[0]:,.0f} | {means[1]:,.0f} | {means[2]:,.1f} |"
            )


def rated(setting: Setting, times: int) -> tuple[list[Outcome], str]:
    """How studies went, and how many times the ideal time they took: the median and the range."""
    found = outcomes(setting, times)
    ratios = sorted(one.seconds / ideal(setting) for one in found)
    return found, f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def said(deaths_per_hour: float) -> str:
    return f"every {1 / deaths_per_hour:g} h" if deaths_per_hour else "never"


def short(times: int) -> Iterator[str]:
    base = Setting(workers=1_000, loads=10_000, load_seconds=33.0)
    yield f"1,000 workers, 10,000 loads of 33 s (ideal with equal times: {ideal(base):,.0f} s):"
    yield ""
    yield from rows_of(base, (0.0, 1.0, 10.0), times)


def long(times: int) -> Iterator[str]:
    base = Setting(workers=1_000, loads=4_000, load_seconds=1.3 * HOUR, epochs=90, start_up=60.0)
    yield f"1,000 workers, 4,000 loads of 1.3 h (ideal with equal times: {ideal(base) / HOUR:.1f} h):"
    yield ""
    yield from rows_of(base, (0.0, 0.01, 0.1, 1.0), times)


def driver(times: int) -> Iterator[str]:
    """How short loads may be before one driver is too slow."""
    yield "| load | driver's time for each | × ideal |"
    yield "|---|---:|---:|"
    for seconds in (5.0, 33.0, 300.0):
        for dispatch in (0.002, 0.02, 0.1):
            setting = Setting(1_000, 10_000, seconds, long_share=0.0, dispatch=dispatch)
            found = [one.seconds / ideal(setting) for one in outcomes(setting, min(times, 3))]
            yield f"| {seconds:.0f} s | {1000 * dispatch:.0f} ms | {statistics.median(found):.2f} |"


@dataclass(frozen=True)
class Study:
    name: str
    train: int
    valid: int
    test: int
    epochs: int


STUDIES = (
    Study("ImageNet-LT, 90 epochs", 115_846, 20_000, 50_000, 90),
    Study("iNaturalist 2018, 90 epochs", 437_513, 0, 24_426, 90),
    Study("iNaturalist 2018, 200 epochs", 437_513, 0, 24_426, 200),
)
METHODS, SEEDS = 12, 5
RATES = (1_500, 2_500, 4_000)  # images/s of one GPU in training; assumed
FORWARD = 3  # a step costs about three times a forward pass
DECODED = 735  # images/s of the first pass, one machine; measured
CHECKPOINTS = 0.02  # share of the time, at most


def run_seconds(study: Study, rate: float) -> float:
    """Of one training on one GPU, with what is looked at after each epoch."""
    epoch = study.train / rate + study.valid / (FORWARD * rate)
    return (1 + CHECKPOINTS) * study.epochs * epoch


def costs(times: int) -> Iterator[str]:
    """60 trainings, then the two longer ones that tell whether training was long enough; nothing dies."""
    yield "| study | images/s of a GPU | one training | GPU hours | 1 GPU | 8 GPUs | 64 GPUs |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for study in STUDIES:
        for rate in RATES:
            one = run_seconds(study, rate)
            decode = (study.train + study.valid + study.test) / DECODED
            total = [decode + wall(one, study.epochs, gpus) for gpus in (1, 8, 64)]
            hours = (METHODS * SEEDS + 4) * one / HOUR
            shown = " | ".join(f"{seconds / HOUR:,.0f} h" for seconds in total)
            yield f"| {study.name} | {rate:,} | {one / HOUR:.1f} h | {hours:,.0f} | {shown} |"


def wall(one: float, epochs: int, gpus: int) -> float:
    setting = Setting(gpus, METHODS * SEEDS, one, epochs, long_share=0.0, start_up=60.0)
    longer = Setting(min(gpus, 2), 2, 2 * one, 2 * epochs, long_share=0.0, start_up=60.0)
    return sum(outcomes(each, 1)[0].seconds for each in (setting, longer))


if __name__ == "__main__":
    print_sections({"costs": costs, "short": short, "long": long, "driver": driver}, __doc__, studies=20)
