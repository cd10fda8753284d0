"""Trains studies of the papers for so many seconds, and writes small records of what came out.

    python benchmarks/papers.py --studies class_balanced_table2_cifar10_ratio100 mfw_table5_cifar10_long_tailed \
        --seeds 5 --seconds 540 --data DIR --out OUT

A study is named by its file in studies/full (or given by its path). Runs that are in docs/results/records or in
OUT/records.jsonl are not done again, and a run is in OUT/records.jsonl a few seconds after its end, whatever happens to
this process then; what is under way when the time is up goes on from its checkpoint if the folder --work is still
there. `equipoise records OUT/records.jsonl` then adds the new runs to docs/results/records, and `equipoise tables`
makes the tables of them.

Studies of one network that follow each other share their packs: on a GPU, runs of the same data, batch size and length
train side by side, whatever their method, seed and study.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from equipoise.core.files import write_whole
from equipoise.reproduction import RunRecord, read_records, records_of, train_missing
from equipoise.store import Store
from equipoise.study import Event, How, Interrupted, OnTerminal, Study, Watch, bound

ROOT = Path(__file__).resolve().parents[1]
GRACE = 30.0  # seconds from the request for a clean stop, at the end of an epoch, to the end in any case
PAUSE = 5.0  # seconds between two writings of the records while runs go on


def study_of(name: str, seeds: int | None) -> Study:
    """The study of that name, with so many seeds."""
    path = Path(name) if name.endswith(".toml") else ROOT / "studies" / "full" / f"{name}.toml"
    study = Study.from_toml(path)
    return replace(study, seeds=tuple(range(seeds)) if seeds else study.seeds)


def without(study: Study, leave_out: Sequence[str]) -> Study:
    """What is trained of it now."""
    return replace(study, methods={m: recipe for m, recipe in study.methods.items() if m not in leave_out})


def network_of(study: Study) -> str:
    return study.methods[study.baseline].model


def recorded_runs(*places: Path) -> dict[str, RunRecord]:
    """The finished runs in files and folders of records, as far as these are there, by key."""
    studies = [study for place in places if place.exists() for study in read_records(place).values()]
    return {run.key: run for study in studies for run in study.runs if not run.error}


class Keeping(OnTerminal):
    """Keeps the records of finished runs while others go on: a machine may be taken away before the end."""

    def __init__(self, keep: Callable[[], object]) -> None:
        super().__init__()
        self.keep, self.kept = keep, -PAUSE

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
        if event.what == "done":
            self.keeping.keep_now_and_then()

    def count(self, done: int) -> None:
        self.bars.count(done)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Ends what is within after so many seconds, as Ctrl-C does: cleanly, and at once if that takes too long."""
    timers = [threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)) for after in (seconds, seconds + GRACE)]
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
    parser.add_argument("--studies", nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder for records.jsonl")
    parser.add_argument("--seconds", type=float, default=540.0, help="stop cleanly after so many")
    parser.add_argument("--data", type=Path, help="folder of the data sets; default as EQUIPOISE_DATA says")
    parser.add_argument("--seeds", type=int, help="of each study, from 0; default as its file says")
    parser.add_argument("--leave-out", nargs="*", default=[], help="methods not to train now; their runs are kept")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "papers", help="folder of the runs themselves")
    parser.add_argument("--device")
    parser.add_argument("--workers", type=int, help="processes side by side, also on a GPU, for runs that go alone")
    parser.add_argument("--fast", action="store_true", help="on a GPU the fastest kernels")
    asked, began = parser.parse_args(), time.monotonic()

    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    records, store = asked.out / "records.jsonl", Store(asked.work).create()
    recorded = recorded_runs(ROOT / "docs" / "results" / "records", records)
    how = How.on(asked.device, asked.workers, fast=asked.fast)
    studies = [bound(study_of(name, asked.seeds), store) for name in asked.studies]
    keep = partial(write_records, studies, store, records, recorded)
    listener = Keeping(keep)
    try:
        with stopped_after(asked.seconds - (time.monotonic() - began)):
            for network, alike in groupby(studies, key=network_of):
                print(f"{network}, after {time.monotonic() - began:.0f} seconds", flush=True)
                train_missing([without(study, asked.leave_out) for study in alike], store, how, listener, recorded)
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
