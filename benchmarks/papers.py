"""Trains the runs of papers' tables on a GPU, for so many seconds, and leaves their records.

    python benchmarks/papers.py --data DIR --out OUT --seconds 540
    python benchmarks/papers.py --studies class_balanced_table2_cifar10_ratio100 --seeds 5 --data DIR --out OUT
    python benchmarks/papers.py --missing --data DIR

Without --studies it goes through the steps of wanted.toml, beside this file, as far as their data is there. A study is
named by its file in studies/full (or given by its path). Runs that are in docs/results/records or in OUT/records.jsonl
are not done again, and a run is in OUT/records.jsonl a few seconds after its end, whatever happens to this process
then; what is under way when the time is up goes on from its checkpoint if the folder --work is still there. `equipoise
records OUT/records.jsonl` then adds the new runs to docs/results/records, and `equipoise tables` makes the tables of
them. --missing trains nothing and says how many images are left to train on.

Studies of one network that follow each other share their packs: on a GPU, runs of the same data, batch size and length
train side by side, whatever their method, seed and study.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from equipoise.core import EquipoiseError
from equipoise.core.files import write_whole
from equipoise.data import load_task
from equipoise.reproduction import RunRecord, read_records, records_of, train_missing
from equipoise.store import Store
from equipoise.study import Event, How, Interrupted, OnTerminal, Study, Watch, bound, read_toml
from equipoise.train import Recipe, TaskChoice

ROOT = Path(__file__).resolve().parents[1]
WANTED = Path(__file__).parent / "wanted.toml"
GRACE = 30.0  # seconds from the request for a clean stop, at the end of an epoch, to the end in any case
PAUSE = 5.0  # seconds between two writings of the records while runs go on


def study_of(name: str, seeds: int | None) -> Study:
    """The study of that name, with so many seeds."""
    path = Path(name) if name.endswith(".toml") else ROOT / "studies" / "full" / f"{name}.toml"
    study = Study.from_toml(path)
    return replace(study, seeds=tuple(range(seeds)) if seeds else study.seeds)


def without(study: Study, leave_out: Sequence[str]) -> Study:
    return replace(study, methods={m: recipe for m, recipe in study.methods.items() if m not in leave_out})


@dataclass(frozen=True)
class Step:
    """Studies to train, with so many seeds (None: as their files say), but for some methods."""

    studies: Sequence[str]
    seeds: int | None = None
    leave_out: Sequence[str] = ()

    def read(self) -> list[Study]:
        return [study_of(name, self.seeds) for name in self.studies]

    def bound(self, store: Store) -> list[Wanted]:
        """Its studies, tied to their data."""
        studies = [bound(study, store) for study in self.read()]
        return [Wanted(study, without(study, self.leave_out)) for study in studies]


@dataclass(frozen=True)
class Wanted:
    """A study, and what is trained of it now."""

    study: Study
    now: Study

    @property
    def network(self) -> str:
        return self.study.methods[self.study.baseline].model


def wanted_now(store: Store) -> list[Wanted]:
    """The studies of wanted.toml whose data is there; the others are named."""
    found = []
    for step in wanted_steps():
        for name in step.studies:
            try:
                found += replace(step, studies=[name]).bound(store)
            except EquipoiseError as error:
                print(f"left out: {name}. {error}", flush=True)
    return found


def wanted_steps() -> list[Step]:
    return [Step(**plain) for plain in read_toml(WANTED)["step"]]


def print_missing(wanted: Sequence[Wanted], recorded: Mapping[str, RunRecord]) -> None:
    """How many trainings each study lacks, and how many images they are; what two lack counts for the first."""
    seen: set[str] = set()
    print(f"{'':<50} trainings, million images: plain steps   longer ones")
    for each in wanted:
        left = [first_of(recipe) for _, recipe in each.now.recipes() if recipe.key not in recorded]
        new = {recipe.key: recipe for recipe in left if recipe.key not in seen}
        seen |= new.keys()
        plain = sum(images_of(recipe) for recipe in new.values() if recipe.plain_steps) / 1e6
        longer = sum(images_of(recipe) for recipe in new.values() if not recipe.plain_steps) / 1e6
        print(f"{each.study.name:<50} {len(new):>9} {plain:>28.0f} {longer:>13.0f}")


def first_of(recipe: Recipe) -> Recipe:
    """The training that this one continues or corrects, or itself."""
    return recipe if recipe.parent is None else first_of(recipe.parent)


def images_of(recipe: Recipe) -> int:
    return training_images(recipe.task) * recipe.plan.epochs * recipe.networks


@cache
def training_images(choice: TaskChoice) -> int:
    options = {name: value for name, value in asdict(choice).items() if name != "content"}
    return len(load_task(**options).train)


def recorded_runs(*places: Path) -> dict[str, RunRecord]:
    """The finished runs in files and folders of records, as far as these are there, by key."""
    studies = [study for place in places if place.exists() for study in read_records(place).values()]
    return {run.key: run for study in studies for run in study.runs if not run.error}


class Keeping(OnTerminal):
    """Keeps the records of finished runs while others go on: a machine may be taken away before the end.

    It says when a load of runs begins, so that a log tells what start and end cost.
    """

    def __init__(self, keep: Callable[[], object]) -> None:
        super().__init__()
        self.keep, self.kept, self.began = keep, -PAUSE, time.monotonic()

    @contextmanager
    def runs(self, names: Mapping[str, str], total: int, done: int) -> Iterator[Watch]:
        with super().runs(names, total, done) as bars:
            yield _Kept(self, bars)

    def keep_now_and_then(self) -> None:
        if time.monotonic() - self.kept > PAUSE:
            with suppress(OSError):  # the next time, or the last, is as good
                self.keep()
            self.kept = time.monotonic()


class _Kept(Watch):
    def __init__(self, keeping: Keeping, bars: Watch) -> None:
        self.keeping, self.bars = keeping, bars

    def event(self, event: Event, store: Store) -> None:
        self.bars.event(event, store)
        if event.what == "begun" and event.place == 0:  # the first of its load
            self.keeping.say(f"training after {time.monotonic() - self.keeping.began:.0f} seconds")
        if event.what == "done":
            self.keeping.keep_now_and_then()

    def count(self, done: int) -> None:
        self.bars.count(done)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Ends what is within after so many seconds, as Ctrl-C does: cleanly, and at once if that takes too long."""
    ends = (seconds, seconds + GRACE) if math.isfinite(seconds) else ()
    timers = [threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)) for after in ends]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        yield
    except (Interrupted, KeyboardInterrupt):
        print(f"stopped after {seconds:.0f} seconds", flush=True)
    finally:
        for timer in timers:
            timer.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", help="default: the steps of wanted.toml")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "records", help="folder for records.jsonl")
    parser.add_argument("--seconds", type=float, default=540.0, help="stop cleanly after so many")
    parser.add_argument("--data", type=Path, help="folder of the data sets; default as EQUIPOISE_DATA says")
    parser.add_argument("--seeds", type=int, help="of each study, from 0; default as its file says")
    parser.add_argument("--leave-out", nargs="*", default=[], help="methods not to train now; their runs are kept")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "papers", help="folder of the runs themselves")
    parser.add_argument("--device")
    parser.add_argument("--workers", type=int, help="processes side by side, also on a GPU")
    parser.add_argument("--fast", action="store_true", help="on a GPU the fastest kernels")
    parser.add_argument("--missing", action="store_true", help="train nothing, say what is left to do")
    asked, began = parser.parse_args(), time.monotonic()

    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    records, store = asked.out / "records.jsonl", Store(asked.work).create()
    recorded = recorded_runs(ROOT / "docs" / "results" / "records", records)
    how = How.on(asked.device, asked.workers, fast=asked.fast)
    if asked.studies:
        wanted = Step(asked.studies, asked.seeds, asked.leave_out).bound(store)
    else:
        wanted = wanted_now(store)
    if asked.missing:
        return print_missing(wanted, recorded)
    train_and_keep(wanted, store, how, records, recorded, asked.seconds - (time.monotonic() - began))


def train_and_keep(
    wanted: Sequence[Wanted],
    store: Store,
    how: How,
    records: Path,
    recorded: Mapping[str, RunRecord],
    seconds: float = math.inf,
) -> None:
    """Train what is missing, for so many seconds, and keep what it comes to in the file `records`."""
    keep, began = partial(write_records, [each.study for each in wanted], store, records, recorded), time.monotonic()
    listener = Keeping(keep)
    try:
        with stopped_after(seconds):
            for network, alike in groupby(wanted, key=lambda each: each.network):
                print(f"{network}, after {time.monotonic() - began:.0f} seconds", flush=True)
                train_missing([each.now for each in alike], store, how, listener, recorded)
    finally:  # also where one of the studies cannot be run: what the others came to is kept
        for name, (done, failed, total) in keep().items():
            print(f"{name}: {done} of {total} runs done, of which {failed} failed")


def write_records(
    studies: Sequence[Study], store: Store, path: Path, recorded: Mapping[str, RunRecord]
) -> dict[str, tuple[int, int, int]]:
    """All studies in one file, with the runs that it has already; gives the runs of each: done, failed and in all."""
    kept = read_records(path) if path.exists() else {}
    counts = {}
    for study in studies:
        found = records_of(study.document(), store, recorded, peek=True)
        if found.runs:
            kept[study.name] = kept[study.name].joined(found) if study.name in kept else found
        failed = sum(run.error is not None for run in found.runs)
        counts[study.name] = len(found.runs), failed, len(study.document().keys)
    path.parent.mkdir(parents=True, exist_ok=True)  # here, not at the start: somebody may have cleared it since
    write_whole(path, "".join(study.text() for study in kept.values()).encode())
    return counts


if __name__ == "__main__":
    main()
