"""`equipoise run --until-decided`: seeds in rounds, until what can be settled is settled or the budget is spent.

Nothing here is remembered but the plan: what each round found follows from the records, so a study may be stopped at
any moment and taken up again. Rounds are judged on validation data; with `peek` on test data, which is written down.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

from ...analysis.statistics.looks import plan_looks
from ...analysis.statistics.priority import ALL_METRICS
from ...analysis.statistics.sequential import Rounds, judge
from ...analysis.statistics.tests import smallest_n_for_claim
from ...core import EquipoiseError
from ...core.words import counted
from ...data import load_task
from ...store import Damaged, Store
from ...store.documents import aim_of, same_method
from ...store.lock import at_work
from ...train import Recipe
from ..binding import bind
from ..convergence import train_for_longer
from ..run.child import check_guard
from ..run.how import How
from ..run.job import jobs_of
from ..run.listener import Listener
from ..run.runs import do_runs
from ..scores import paired_scores
from ..study import Study
from .cost import RunTimes
from .forecast import ALPHA

ROOM = 4  # times the fewest seeds that can support a claim: the most a plan has, where no budget says otherwise

Recipes = list[tuple[str, Recipe]]
ENDS = {
    "settled": "every question is answered",
    "given up": "what is left would hardly be answered by the last look",
    "plan": "the last look of the plan is taken",
    "runs": "the next round would go beyond --max-runs",
    "minutes": "the next round would go beyond --minutes",
}


@dataclass(frozen=True)
class Budget:
    """Trainings in all, and minutes of this call; None is no limit."""

    max_runs: int | None = None
    minutes: float | None = None


class NoTime(EquipoiseError):
    """The budget is too small for any round."""


def run_until_decided(
    study: Study,
    store: Store,
    how: How,
    listener: Listener,
    budget: Budget | None = None,
    *,
    peek: bool = False,
) -> Study:
    """Add seeds in rounds, and give the study with the seeds it came to. Raises `Interrupted` after a clean stop."""
    check_guard()
    began, budget = time.monotonic(), budget or Budget()
    study, how = bind(study, store, listener.say), replace(how, watch_classes=study.progress)
    rounds = plan_rounds(study, store, budget, peek)
    first = replace(study, seeds=rounds.seeds[: rounds.looks.seeds[0]])
    if over := _over_budget(_due(first, rounds), store, how, budget, time.monotonic() - began):
        raise NoTime(f"not even the first round, of {counted(rounds.looks.seeds[0], 'seed')}, fits: {ENDS[over]}")
    with at_work(store.create(), first.to_dict(), _but_for_seeds):
        done, rounds = _all_rounds(study, rounds, store, how, listener, budget, began)
        train_for_longer(done, store, how, listener)
    seeds = counted(len(done.seeds), "seed")
    listener.say(f"Ended after {seeds}, judged on {rounds.judged_on} data: {ENDS[str(rounds.ended)]}.\n")
    return done


def _all_rounds(
    study: Study,
    rounds: Rounds,
    store: Store,
    how: How,
    listener: Listener,
    budget: Budget,
    began: float,
) -> tuple[Study, Rounds]:
    """The study with the seeds it came to, and what its rounds found; the first round is within the budget."""
    done, ended = study, "plan"
    so_far: Recipes = []
    for n_seeds in rounds.looks.seeds:
        now = replace(study, seeds=rounds.seeds[:n_seeds])
        due, elapsed = _due(now, rounds), time.monotonic() - began
        over = rounds.found and _over_budget([*so_far, *due], store, how, budget, elapsed)
        if over:
            ended = over
            break
        _write(store, now, rounds)
        do_runs(due, store, how, listener)
        rounds = _judged(now, rounds, store)
        _tell(rounds, listener)
        done, so_far = now, [*so_far, *due]
        if end := _end_of(rounds):
            ended = end
            break
    rounds = replace(rounds, ended=ended)
    _write(store, done, rounds)
    return done, rounds


def _but_for_seeds(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two studies, as study.json has them, differ in no more than their seeds: a round adds some."""
    return _without_seeds(one) == _without_seeds(other)


def _without_seeds(study: Mapping[str, Any]) -> dict[str, Any]:
    methods = [{k: v for k, v in method.items() if k != "keys"} for method in study.get("methods", ())]
    return {k: v for k, v in study.items() if k not in ("seeds", "rounds")} | {"methods": methods}


def plan_rounds(study: Study, store: Store, budget: Budget, peek: bool = False) -> Rounds:
    """The plan of this store, or a new one where nothing was trained by it; nothing is found yet."""
    judged_on = "test" if peek else "validation"
    if store.holds(Rounds) and store.records():
        _check_same_question(study, store)
        return replace(store.document(Rounds), found=(), ended=None, judged_on=judged_on)
    if store.was_opened():
        raise EquipoiseError(
            f"the test set of {store.path} has been opened: what was seen there may not decide how many seeds follow. "
            "Rounds are planned before anything is seen: choose another folder with --out"
        )
    if not peek:
        _check_validation_data(study)
    return replace(new_rounds(study, budget), judged_on=judged_on)


def _check_same_question(study: Study, store: Store) -> None:
    """A plan pays for the looks at one question. It may become another by a new version alone, with other defaults."""
    try:
        opened, now = store.opened(), study.document()
    except Damaged:  # the report says what is lost with it
        return
    compared = opened.compared_for(now) if opened else ()
    if not compared or (aim_of(compared[0]) == aim_of(now) and same_method(now.compared_with, compared[0].baseline)):
        return
    raise EquipoiseError(
        f"the test set of {store.path} was opened when the study had another baseline or metric, and the looks at it "
        "have used up the error that claims may have: nothing could be claimed of what is trained now. Choose another "
        "folder with --out"
    )


def new_rounds(study: Study, budget: Budget) -> Rounds:
    """Looks that fit the budget even if no method is dropped, and the seeds to use: the study's own, then others."""
    comparisons = len(study.methods) - 1
    least, each = smallest_n_for_claim(ALPHA, comparisons), len(jobs_of(study.methods.values()))
    most = max(len(study.seeds), ROOM * least) if budget.max_runs is None else budget.max_runs // each
    if most < least:
        raise EquipoiseError(
            f"--max-runs {budget.max_runs} is {counted(most, 'seed')} of {counted(each, 'training')}, and "
            f"{counted(comparisons + 1, 'method')} need "
            f"{least} seeds for any claim: allow {least * each} runs at least"
        )
    further = (seed for seed in count() if seed not in study.seeds)
    seeds = (*study.seeds, *islice(further, most))[:most]
    return Rounds(ALPHA, plan_looks(most, comparisons, ALPHA), seeds)


def _check_validation_data(study: Study) -> None:
    for task in {recipe.task for recipe in study.methods.values()}:
        if not len(load_task(**{**task.__dict__, "test": False}, seed=study.seeds[0], decode=False).valid):
            raise EquipoiseError(
                "rounds are judged on validation data, and this task has none: write valid = 0.1 in [task], or judge "
                "on the test set with --peek, which every later report will say"
            )


def _over_budget(recipes: Recipes, store: Store, how: How, budget: Budget, elapsed: float) -> str | None:
    """Which part of the budget these runs, done and due, would go beyond."""
    jobs = jobs_of(recipe for _, recipe in recipes)
    if budget.max_runs is not None and len(jobs) > budget.max_runs:
        return "runs"
    if budget.minutes is not None:
        wall = RunTimes(store, how.device, quick=True).cost(jobs, how.workers).wall
        return "minutes" if wall and elapsed + wall > 60 * budget.minutes else None
    return None


def _due(study: Study, rounds: Rounds) -> Recipes:
    """The runs of the next round, and those of the same methods before it."""
    kept = rounds.found[-1].kept if rounds.found else tuple(study.methods)
    return [(name, recipe) for name, recipe in study.recipes() if name in kept]


def _write(store: Store, study: Study, rounds: Rounds) -> None:
    store.write(rounds)
    store.write(replace(study.document(), rounds=True))  # so that a plan that is lost is missed


def _judged(study: Study, rounds: Rounds, store: Store) -> Rounds:
    """With what the round that has just been run found."""
    outputs = store.valid
    if rounds.judged_on == "test":
        store.note_opening([r.key for _, r in _due(study, rounds) if store.finished(r.key)], peek=True)
        outputs = store.open_test
    higher = ALL_METRICS[study.metric].higher_is_better
    judged = judge(paired_scores(study, store, outputs), study.baseline, rounds, higher_is_better=higher)
    return replace(rounds, found=(*rounds.found, judged))


def _end_of(rounds: Rounds) -> str | None:
    """Why the last round is the end, if it is."""
    last = rounds.found[-1]
    if last.open:
        return None
    if not last.given_up:
        return "settled"
    return "given up" if len(rounds.found) < len(rounds.looks.seeds) else None


def _tell(rounds: Rounds, listener: Listener) -> None:
    look, judged = len(rounds.found), rounds.found[-1]
    seeds = counted(rounds.looks.seeds[look - 1], "seed")
    listener.say(f"Round {look} of at most {len(rounds.looks.seeds)}: {seeds}.")
    for name, reason in judged.dropped.items():
        listener.say(f"  {name} gets no more: {reason}.")
    for what, questions in (("Open", judged.open), ("Given up", judged.given_up)):
        if questions:
            listener.say(f"  {what}: {', '.join(questions)}.")
