"""How a study is going, from another terminal: runs, epochs, time left, and the best so far.

The best is by validation data, as long as the runs go on: the test set stays sealed, and watching costs no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..analysis.statistics.priority import ALL_METRICS
from ..core.times import duration
from ..store import Record, Store
from ..store.underway import UnderWay, read_note
from .collect import estimate
from .collected import Estimate
from .render.words import interval, title_of, value
from .seal import rounds_of

STATES = ("finished", "under way", "failed", "to do")


@dataclass(frozen=True)
class RunStatus:
    """`state` is one of `STATES`; `note` is known of runs under way that have told of an epoch.

    `damage` says what is wrong with the files of a run, which is then to be done again.
    """

    method: str
    seed: int
    state: str
    record: Record | None = None
    note: UnderWay | None = None
    damage: str = ""


@dataclass(frozen=True)
class Status:
    """A study under way. `best` is the method with the best mean on validation data, None while nothing is known."""

    question: str
    metric: str
    runs: tuple[RunStatus, ...]
    best: tuple[str, Estimate] | None
    seconds_left: float | None


def status_of(store: Store) -> Status:
    """Look at a study without touching anything, its test outputs least of all."""
    study, rounds = store.study(), rounds_of(store)
    dropped = {name for each in rounds.found for name in each.dropped} if rounds else set()
    every = [
        _run(store, method.name, seed, key)
        for method in study.methods
        for seed, key in zip(study.seeds, method.keys, strict=True)
    ]
    runs = tuple(run for run in every if run.state != "to do" or run.method not in dropped)
    return Status(study.question, study.metric, runs, _best(runs, study.metric), _seconds_left(runs))


def _run(store: Store, method: str, seed: int, key: str) -> RunStatus:
    if store.has(key):
        if damage := store.damage(key):
            return RunStatus(method, seed, "to do", damage=str(damage))
        record = store.get(key)
        return RunStatus(method, seed, "finished" if record.finished else "failed", record)
    if store.is_claimed(key):
        return RunStatus(method, seed, "under way", note=read_note(store, key))
    return RunStatus(method, seed, "to do")


def _best(runs: Sequence[RunStatus], metric: str) -> tuple[str, Estimate] | None:
    scores: dict[str, list[float]] = {}
    for run in runs:
        if run.record and f"valid_{metric}" in run.record.metrics:
            scores.setdefault(run.method, []).append(run.record.metrics[f"valid_{metric}"])
    estimates = {name: e for name, values in scores.items() if (e := estimate(values)).n}
    if not estimates:
        return None
    sign = 1 if ALL_METRICS[metric].higher_is_better else -1
    name = max(estimates, key=lambda name: sign * estimates[name].mean)
    return name, estimates[name]


def _seconds_left(runs: Sequence[RunStatus]) -> float | None:
    """What is left of the runs under way, and of those to do the mean of the finished ones, shared by as many workers.

    None where nobody is at work, or nothing tells how long a run takes.
    """
    at_work = [run for run in runs if run.state == "under way"]
    took = [run.record.seconds for run in runs if run.record and run.state == "finished"]
    usual = sum(took) / len(took) if took else None
    left = [run.note.seconds_left if run.note else None for run in at_work]
    whole = [usual if seconds is None else seconds for seconds in left]
    whole += [usual for run in runs if run.state == "to do"]
    known = [seconds for seconds in whole if seconds is not None]
    return sum(known) / len(at_work) if at_work and len(known) == len(whole) else None


def print_status(status: Status, console: Console) -> None:
    """The question, a row for each method, the runs under way, the best so far and the time left."""
    console.print(Text(status.question, style="bold"))
    console.print(_table(status.runs))
    for run in status.runs:
        if run.note:
            left = run.note.seconds_left
            time_left = "" if left is None else f", about {duration(left)} left"
            words = f"{run.method} · seed {run.seed}: epoch {run.note.epoch} of {run.note.epochs}{time_left}"
            console.print(Text(words, style="dim"))
    for damage in dict.fromkeys(run.damage for run in status.runs if run.damage):
        console.print(Text(damage, style="yellow"), soft_wrap=True)
    if status.best:
        name, e = status.best
        title = title_of(f"valid_{status.metric}").lower()
        score = f"{value(e.mean, status.metric)} {interval(e.low, e.high, status.metric)}, n = {e.n}"
        console.print(Text(f"Best so far: {name}, {title} {score}"))
    if status.seconds_left is not None:
        console.print(Text(f"About {duration(status.seconds_left)} left"))


def _table(runs: Sequence[RunStatus]) -> Table:
    table = Table("method", *STATES, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in dict.fromkeys(run.method for run in runs):
        table.add_row(Text(name), *_counts([run for run in runs if run.method == name]))
    table.add_section()
    table.add_row("all", *_counts(runs), style="bold")
    return table


def _counts(runs: Sequence[RunStatus]) -> list[str]:
    states = [run.state for run in runs]
    return [str(states.count(state)) for state in STATES]
