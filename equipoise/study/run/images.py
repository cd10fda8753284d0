"""The images that a recipe is trained on, where it is trained; or the features that stand for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import torch

from ...core import EquipoiseError
from ...core.progress import Progress, silent
from ...data import Source, Task, load_task
from ...store import Store, explained
from ...train import Recipe, TaskChoice, embedded
from .child import Failed, ask
from .shared import cache_of

RESIDENT_SHARE = 0.3  # of a GPU's free memory; larger sets come through a loader

Backbone = tuple[str, str | None]  # model, and file of weights


def task_of(recipe: Recipe, store: Store, device: torch.device) -> Task:
    """The task of a recipe: on a GPU with room for it in its memory, else in files that processes share."""
    with explained(store.path):
        return _task_on(recipe.task, recipe.seed, backbone(recipe), cache_of(store), device)


def backbone(recipe: Recipe) -> Backbone | None:
    """The network on whose features a recipe is trained; None where it is trained on images."""
    return (recipe.model, recipe.plan.weights) if recipe.plan.train == "head" else None


def look_at_images(recipe: Recipe, store: Store, device: torch.device, told: Progress = silent) -> None:
    """Read all images of a recipe's task: broken ones are told here, and features that stand for images are made.

    A GPU makes them in another process, and tells no progress.
    """
    by = backbone(recipe)
    if by is None:
        task_of(recipe, store, torch.device("cpu"))
        return
    if device.type == "cpu":
        through = partial(embedded, model=by[0], weights=by[1], device=device, progress=told)
        with explained(store.path):
            load_task(**recipe.task.__dict__, seed=recipe.seed, through=through)
        return
    try:
        ask(device, _look, recipe, store.path, device)
    except Failed as failed:
        raise EquipoiseError(str(failed)) from None


def _look(recipe: Recipe, path: Path, device: torch.device) -> None:
    task_of(recipe, Store(path), device)


@lru_cache(maxsize=2)  # a study's jobs come a seed at a time, so the task of a seed is built once
def _task_on(choice: TaskChoice, seed: int, by: Backbone | None, cache: Path, device: torch.device) -> Task:
    through = by and _looking(by, device)
    task = load_task(**choice.__dict__, seed=seed, cache=cache, through=through)
    if device.type == "cuda" and task.bytes_to(device) < RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0]:
        task = task.in_memory()
    return task.to(device)


@lru_cache(maxsize=2)  # the same function for all seeds, so that images are looked up once
def _looking(by: Backbone, device: torch.device) -> Callable[[Source], Source]:
    return partial(embedded, model=by[0], weights=by[1], device=device)
