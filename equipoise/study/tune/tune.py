"""Tunes a study to its end, or to Ctrl-C, through the same workers and store as `equipoise run`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from ...core import EquipoiseError
from ...core.words import counted
from ...store import Store
from ..binding import bound
from ..run.child import check_guard
from ..run.how import How
from ..run.job import Job, jobs_of
from ..run.listener import Listener
from ..run.runs import Interrupted, on_ctrl_c, set_aside_damaged, stop_on_interrupt
from ..run.workers import Workers
from ..study import Study
from .aim import Aim
from .company import Alone, is_shared
from .method import Due, MethodTuning
from .outcome import MethodOutcome, Outcome, best_trial
from .prepare import check, company_of, database_told, searches_of, spaces_of
from .space import Space

WAIT_SECONDS = 0.5  # between two looks at what others have done, where there is nothing to do here


def tune_study(study: Study, store: Store, how: How, listener: Listener, storage: str | None = None) -> Outcome:
    """Give every method its trials; what the store has is not done again. Raises `Interrupted` after a clean stop.

    `storage` is the URL of Optuna's database; by default a file in the store's folder. Of PostgreSQL, all processes
    that are given the same study and URL share the search, each with a store of its own.
    """
    check_guard()
    study = bound(study)
    spaces = spaces_of(study)
    check(study, spaces)
    store.create()
    aim = Aim(study.metric, study.priority)
    with (
        _alone(store),
        database_told(study, store, storage),
        closing(company_of(study, spaces, store, storage, aim, how)) as company,
        ExitStack() as opened,
    ):
        set_aside_damaged(store, listener)
        with company.setup():
            searches = opened.enter_context(searches_of(study, spaces, store, storage))
        methods = [
            MethodTuning(
                name,
                space,
                searches[name],
                study.tuning.seeds,
                aim,
                study.tuning.trials,
                race=study.tuning.race,
                halves=how.engine != "ray" and not is_shared(storage),  # a run that waits does so in one store
            )
            for name, space in spaces.items()
        ]
        _announce(study, spaces, company, listener)
        _run(methods, company, store, how, listener)
    found = [MethodOutcome(m.name, m.space.axes, m.trials, best_trial(m.trials, study.metric)) for m in methods]
    return Outcome(study, found)


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Two processes in one folder would each spend the budget; those that share a database have a folder each."""
    with store.claim("tune") as mine:
        if not mine:
            raise EquipoiseError(f"another equipoise tune is at work in {store.path}: wait for it, or choose --out")
        yield


def _announce(study: Study, spaces: dict[str, Space], company: Alone, listener: Listener) -> None:
    tuning = study.tuning
    each = f"{counted(tuning.trials, 'trial')} ({tuning.sampler}) of {counted(len(tuning.seeds), 'run')}"
    listener.say(f"{each} for each of {counted(len(spaces), 'method')}, scored on validation data alone.")
    if company.words:
        listener.say(company.words)
    for name, space in spaces.items():
        dials = "; ".join(f"{dial} {', '.join(f'{v!r}' for v in axis.values)}" for dial, axis in space.axes.items())
        listener.say(f"  {name}: {dials}", "faint")


def _run(methods: list[MethodTuning], company: Alone, store: Store, how: How, listener: Listener) -> None:
    """Keep the workers busy with what is due, until nothing is."""
    queue = _Queue(methods, company)
    total = sum(method.budget * len(method.seeds) for method in methods)
    jobs = queue.jobs()
    with on_ctrl_c(), listener.runs(queue.names, total, queue.done()) as watch:
        while jobs or queue.waits:
            if not jobs:
                time.sleep(WAIT_SECONDS)
                jobs = queue.jobs(again=True)
                watch.count(queue.done())
                continue
            pool = Workers(jobs, store, how)
            with stop_on_interrupt(pool, listener):
                for event in pool.events():
                    watch.event(event, store)
                    if event.what == "fatal":
                        pool.stop()
                        raise EquipoiseError(event.error or "a worker failed")
                    if event.what == "done":
                        company.done(event.job)
                    if event.what in ("done", "waits") and not pool.stopping:
                        # the pool goes on as long as something waits, so a method need not wait for the others' waves
                        pool.add(queue.jobs())
                        watch.count(queue.done())
            if pool.stopping:
                raise Interrupted
            jobs = queue.jobs(again=True)


class _Queue:
    """The runs that the methods need next, each given out once."""

    def __init__(self, methods: list[MethodTuning], company: Alone) -> None:
        self.methods, self.company = methods, company
        self.names: dict[str, str] = {}  # of all runs that were due, by key
        self.given: set[tuple[str, int | None]] = set()  # the keys of those given out, and up to which epoch
        self.waits = False  # whether something is due: given out, or taken by others

    def jobs(self, *, again: bool = False) -> list[Job]:
        """Jobs that have become due, and are ours; with `again` also those given out before and still missing."""
        if again:
            self.given.clear()
        due = self._due()
        self.waits = bool(due)
        fresh = [d for d in due if self.given.isdisjoint({(d.run.key, None), (d.run.key, d.until)})]
        whole = {d.run.key for d in fresh if d.until is None}
        until = {d.run.key: d.until for d in fresh if d.until is not None and d.run.key not in whole}
        jobs = self.company.taken(jobs_of([d.run for d in fresh], until))
        self.given |= {(recipe.key, job.until) for job in jobs for recipe in job.recipes}
        return jobs

    def _due(self) -> list[Due]:
        """What is missing when all that others have done is known."""
        with self.company.turn():
            due = self._missing()
            while self.company.has_news(missing.run.key for _, missing in due):
                due = self._missing()
        for method, missing in due:
            self.names[missing.run.key] = f"{method.name} · trial {missing.trial.number} · seed {missing.run.seed}"
        return [missing for _, missing in due]

    def _missing(self) -> list[tuple[MethodTuning, Due]]:
        return [(method, missing) for method in self.methods for missing in method.due(self.company.records)]

    def done(self) -> int:
        return sum(method.runs_done(self.company.records) for method in self.methods)
