"""Trains the runs of studies that are not recorded yet, and nothing besides: no report, no longer trainings."""

from __future__ import annotations

from collections.abc import Container, Iterable

from ..store import Store
from ..study import How, Listener, Study
from ..study.run.runs import do_runs


def train_missing(
    studies: Iterable[Study], store: Store, how: How, listener: Listener, recorded: Container[str] = ()
) -> None:
    """Do the runs that neither the store nor `recorded`, keys of runs, has.

    The studies must be bound to their data (`equipoise.study.bound`), so that their keys are those of records. What
    they have in common is trained once. On a GPU, runs of the same data, batch size and length are packed together,
    whatever their method, seed and study; those whose steps are not the plain ones take longer and come last. Raises
    `equipoise.study.Interrupted` after Ctrl-C; what was under way goes on at the next call.
    """
    recipes = [(name, recipe) for study in studies for name, recipe in study.recipes() if recipe.key not in recorded]
    recipes.sort(key=lambda named: not named[1].plain_steps)
    do_runs(recipes, store.create(), how, listener)
