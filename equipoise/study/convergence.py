"""Trains the baseline and the best method once more, for longer: the report can then tell whether training was enough.

The longer runs are ordinary records of the study's store, with keys of their own. They are no part of the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..analysis.statistics.priority import ALL_METRICS
from ..store import Convergence, LongerRun, Store
from ..train import Recipe
from .run.how import How
from .run.job import jobs_of
from .run.listener import Listener
from .run.runs import do_runs
from .scores import valid_scores
from .study import Study

LONGER = 2  # times the epochs
CHEAP = 0.2  # of the epochs of the whole study: what is spent without being asked

Named = tuple[str, Recipe]


def train_for_longer(study: Study, store: Store, how: How, listener: Listener) -> None:
    """Once all runs of `study` are done: train a few for longer, and write down which.

    The test set is not looked at. With `how.pilot` it is done whatever it costs.
    """
    runs, reason = _longer_runs(study, store, math.inf if how.pilot else CHEAP)
    longer = tuple(
        LongerRun(name, recipe.seed, recipe.key, study.methods[name].plan.epochs, recipe.plan.epochs)
        for name, recipe in runs
    )
    store.write(Convergence(longer, reason))
    if not all(store.has(recipe.key) for _, recipe in runs):
        names = " and ".join(f"{name} for {recipe.plan.epochs} epochs" for name, recipe in runs)
        listener.say(f"To tell whether training was long enough: {names}.")
        do_runs(runs, store, replace(how, watch_classes=False), listener)


def _longer_runs(study: Study, store: Store, most: float) -> tuple[list[Named], str]:
    """The baseline and the best other method, or the baseline alone where that is too dear; if none, the reason."""
    finished = [seed for seed in study.seeds if store.finished(replace(study.methods[study.baseline], seed=seed).key)]
    if not finished:
        return [], "no run of the baseline has finished"
    names = [study.baseline, *_best(study.baseline, valid_scores(study, store), study.metric)]
    try:
        runs = [(name, _longer(study.methods[name], finished[0])) for name in names]
    except ValueError as error:  # of a schedule that ends earlier, say
        return [], f"it cannot be trained for longer ({error})"
    whole = _epochs(study.recipes())
    for affordable in (runs, runs[:1]):
        if _epochs(affordable) <= most * whole:
            return affordable, ""
    share = _epochs(runs[:1]) / whole
    return [], f"a longer training costs {100 * share:.0f} % of the study; --pilot makes it"


def _best(baseline: str, scores: Mapping[str, Sequence[float]], metric: str) -> list[str]:
    """The method with the best mean difference to the baseline on validation data; none where no score is known."""
    sign = 1 if ALL_METRICS[metric].higher_is_better else -1
    differences = {name: sign * (np.array(own) - np.array(scores[baseline])) for name, own in scores.items()}
    known = {name: float(np.nanmean(d)) for name, d in differences.items() if np.isfinite(d).any() and name != baseline}
    return [max(known, key=lambda name: known[name])] if known else []


def _longer(recipe: Recipe, seed: int) -> Recipe:
    return replace(recipe, seed=seed, plan=replace(recipe.plan, epochs=LONGER * recipe.plan.epochs))


def _epochs(runs: Iterable[Named]) -> int:
    """Of all trainings; what corrects a trained network costs none."""
    jobs = jobs_of(recipe for _, recipe in runs)
    return sum(recipe.plan.epochs for job in jobs for recipe in job.recipes if recipe.posthoc is None)
