"""Tunes a study to its end, or to Ctrl-C, through the same workers and store as `equipoise run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...core import EquipoiseError
from ...core.words import counted
from ...store import Store
from ...train import Recipe
from ..binding import bound
from ..run.child import check_guard
from ..run.how import How
from ..run.job import Job, jobs_of
from ..run.listener import Listener
from ..run.runs import Interrupted, on_ctrl_c, set_aside_damaged, stop_on_interrupt
from ..run.workers import Workers
from ..study import Study
from .aim import Aim
from .method import MethodTuning
from .outcome import MethodOutcome, Outcome, best_trial
from .prepare import check, database_told, searches_of, spaces_of
from .space import Space


def tune_study(study: Study, store: Store, how: How, listener: Listener, storage: str | None = None) -> Outcome:
    """Give every method its trials; what the store has is not done again. Raises `Interrupted` after a clean stop.

    `storage` is the URL of Optuna's database; by default a file in the store's folder.
    """
    check_guard()
    study = bound(study)
    spaces = spaces_of(study)
    check(study, spaces)
    store.create()
    with _alone(store), database_told(study, store, storage):
        set_aside_damaged(store, listener)
        searches, aim = searches_of(study, spaces, store, storage), Aim(study.metric, study.priority)
        methods = [
            MethodTuning(
                name, space, searches[name], study.tuning.seeds, aim, study.tuning.trials, race=study.tuning.race
            )
            for name, space in spaces.items()
        ]
        _announce(study, spaces, listener)
        _run(methods, store, how, listener)
    found = [MethodOutcome(m.name, m.space.axes, m.trials, best_trial(m.trials, study.metric)) for m in methods]
    return Outcome(study, found)


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Two searches in one folder would each spend the budget."""
    with store.claim("tune") as mine:
        if not mine:
            raise EquipoiseError(f"another equipoise tune is at work in {store.path}: wait for it, or choose --out")
        yield


def _announce(study: Study, spaces: dict[str, Space], listener: Listener) -> None:
    tuning = study.tuning
    each = f"{counted(tuning.trials, 'trial')} ({tuning.sampler}) of {counted(len(tuning.seeds), 'run')}"
    listener.say(f"{each} for each of {counted(len(spaces), 'method')}, scored on validation data alone.")
    for name, space in spaces.items():
        dials = "; ".join(f"{dial} {', '.join(f'{v!r}' for v in axis.values)}" for dial, axis in space.axes.items())
        listener.say(f"  {name}: {dials}", "faint")


def _run(methods: list[MethodTuning], store: Store, how: How, listener: Listener) -> None:
    """Keep the workers busy with what is due, until nothing is."""
    queue = _Queue(methods, store)
    total = sum(method.budget * len(method.seeds) for method in methods)
    jobs = queue.jobs()
    with on_ctrl_c(), listener.runs(queue.names, total, queue.done()) as watch:
        while jobs:
            pool = Workers(jobs, store, how)
            with stop_on_interrupt(pool, listener):
                for event in pool.events():
                    watch.event(event, store)
                    if event.what == "fatal":
                        pool.stop()
                        raise EquipoiseError(event.error or "a worker failed")
                    if event.what == "done" and not pool.stopping:
                        # the pool goes on as long as something waits, so a method need not wait for the others' waves
                        pool.add(queue.jobs())
                        watch.count(queue.done())
            if pool.stopping:
                raise Interrupted
            jobs = queue.jobs(again=True)


class _Queue:
    """The runs that the methods need next, each given out once."""

    def __init__(self, methods: list[MethodTuning], store: Store) -> None:
        self.methods, self.store = methods, store
        self.names: dict[str, str] = {}  # of all runs given out, by key

    def jobs(self, *, again: bool = False) -> list[Job]:
        """Jobs that have become due; with `again` also those given out before and still missing."""
        fresh: list[Recipe] = []
        for method in self.methods:
            for trial, run in method.due(self.store):
                if again or run.key not in self.names:
                    self.names[run.key] = f"{method.name} · trial {trial.number} · seed {run.seed}"
                    fresh.append(run)
        return jobs_of(fresh)

    def done(self) -> int:
        return sum(method.runs_done(self.store) for method in self.methods)
