"""What a study needs before it is tuned: spaces, searches, and a refusal of what cannot be tuned."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import torch

from ...analysis.statistics.priority import ALL_METRICS, check_classes
from ...core import EquipoiseError, Output, Spec, checks
from ...core.extras import require
from ...core.words import counted
from ...data import Task, load_task
from ...store import Store
from ...train import Mistakes, Recipe, TaskChoice
from ..run.how import How
from ..study import Study
from .aim import Aim
from .company import Alone, Shared, is_shared, shown_url, with_driver
from .grid import GridSearch
from .method import Search
from .outcome import tuned_name
from .space import Space, space_of

DATABASE = "optuna.db"
RUNS_OF_A_GPU = 8  # that one process takes at a time where others may take some too
MOST_POINTS = 100_000  # of a coarse grid: all are put in order before the first is tried


def spaces_of(study: Study) -> dict[str, Space]:
    """Each method's space; its recipes know nothing of the test set."""
    spaces, mistakes = {}, []
    for name, recipe in study.methods.items():
        sealed = replace(recipe, task=replace(recipe.task, test=False))
        try:
            spaces[name] = space_of(sealed, study.tuning.space, study.tuning.spaces.get(name))
            for dial, axis in spaces[name].axes.items():
                for value in axis.values:
                    spaces[name].at({dial: value})
        except Mistakes as error:
            mistakes += [f"[methods.{name}.space]: {line}" for line in error.lines]
    if mistakes:
        raise Mistakes(mistakes)
    return spaces


def check(study: Study, spaces: dict[str, Space]) -> None:
    """Refuse what cannot be tuned, before anything is written."""
    trials = study.tuning.trials
    checks.file_name("the name of the tuned study", tuned_name(study))
    for name, space in spaces.items():
        if space.size < trials:
            raise EquipoiseError(
                f"the space of {name} has {counted(int(space.size), 'different point')}, fewer than the {trials} "
                "trials that every method is to have: give it more values, or lower trials"
            )
        points = math.prod(len(axis.values) for axis in space.axes.values())
        if study.tuning.sampler == "grid" and points > MOST_POINTS:
            raise EquipoiseError(
                f"the coarse grid of {name} has {points:,} points, more than {MOST_POINTS:,}: give its dials fewer "
                'values, or write sampler = "random"'
            )
        if study.tuning.refit and _needs_fitting(space.recipe):
            raise EquipoiseError(
                f"refit = true leaves no validation data to fit {space.recipe.posthoc} of {name} on: leave refit out, "
                f"or give it a value of its own"
            )
    for task in {space.recipe.task for space in spaces.values()}:
        for seed in study.tuning.seeds:
            data = load_task(**task.__dict__, seed=seed)
            _check_methods(task, data, spaces)
            if study.priority is not None:
                check_classes(study.priority, data.class_names)
            if not len(data.valid):
                raise EquipoiseError(
                    "tuning needs validation data, and this task has none: write valid = 0.1 in [task] to hold out a "
                    "share of the training images, or valid_per_class = 3 and see that some class has more than that"
                )


def _check_methods(task: TaskChoice, data: Task, spaces: dict[str, Space]) -> None:
    mistakes: list[str] = []
    for name, space in spaces.items():
        if space.recipe.task == task:
            try:
                space.recipe.check(data)
            except EquipoiseError as error:
                mistakes.append(f"[methods.{name}]: {error}")
    if mistakes:
        raise Mistakes(mistakes)


def _needs_fitting(recipe: Recipe) -> bool:
    """Whether its post-hoc method finds something on validation data."""
    if recipe.posthoc is None:
        return False
    spec = Spec.parse(recipe.posthoc)
    posthoc = spec.build("posthoc", class_counts=torch.ones(2, dtype=torch.int64), head_weight=torch.ones(2, 1))
    if hasattr(posthoc, "change"):
        return None in dict(spec.params).values()
    try:
        posthoc(Output(torch.zeros(1, 2), torch.zeros(1, 1)))
    except ValueError:  # not fitted
        return True
    return False


def database_told(study: Study, store: Store, url: str | None) -> AbstractContextManager[None]:
    """Within it, an error of a database is a sentence; a grid that nobody shares has none."""
    if study.tuning.sampler == "grid" and not is_shared(url):
        return nullcontext()
    require(f"sampler = '{study.tuning.sampler}'" if url is None else "--storage", "optuna")
    from .sampled import explained

    return explained(shown_url(url) if url else store.path / DATABASE)


def company_of(study: Study, spaces: dict[str, Space], store: Store, url: str | None, aim: Aim, how: How) -> Alone:
    """Who takes part: all that are given the same study and the URL of the same PostgreSQL database, or nobody else."""
    if url is None or not is_shared(url):
        return Alone(store)
    asked = " ".join(_digest(space, study) for space in spaces.values())
    name = f"{study.name} {hashlib.sha256(asked.encode()).hexdigest()[:8]}"
    at_once = 1 if how.device.type == "cpu" else RUNS_OF_A_GPU
    return Shared(url, name, store, aim, most=how.workers * at_once)


@contextmanager
def searches_of(study: Study, spaces: dict[str, Space], store: Store, url: str | None) -> Iterator[dict[str, Search]]:
    """The search that the study asks for, for each method; `url` is that of Optuna's database, which is closed then."""
    tuning, higher = study.tuning, ALL_METRICS[study.metric].higher_is_better
    if tuning.sampler == "grid":
        yield {
            name: GridSearch(space.axes, space.start, tuning.trials, higher_is_better=higher)
            for name, space in spaces.items()
        }
        return
    from .sampled import SampledSearch, storage_at, storage_in  # Optuna takes a while to import

    storage = storage_at(with_driver(url)) if url else storage_in(store.path / DATABASE)
    try:
        yield {
            name: SampledSearch(
                space.axes,
                space.start,
                tuning.trials,
                higher_is_better=higher,
                sampler=tuning.sampler,
                # the median of what a race has left to its end is no measure for the others
                prunes=tuning.prune and not tuning.race and len(tuning.seeds) > 1,
                name=f"{study.name} · {name} · {_digest(space, study)}",  # a study asked differently is another one
                storage=storage,
            )
            for name, space in spaces.items()
        }
    finally:
        storage.engine.dispose()


def _digest(space: Space, study: Study) -> str:
    tuning, axes = study.tuning, {dial: repr(axis) for dial, axis in space.axes.items()}
    priority = study.priority and study.priority.to_dict()
    asked = [space.recipe.to_dict(), axes, study.metric, priority, tuning.seeds, tuning.sampler, tuning.prune]
    asked += [tuning.race] if tuning.race else []
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]
