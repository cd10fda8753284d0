"""Data sets in the object store of a cluster: put there once, fetched once by each node."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ....data import keep_set, load_task, placeless
from ....store import Store, explained
from ....train import Recipe
from ....train.embed import features_files
from ..images import backbone
from ..shared import cache_of
from .connection import Cluster
from .order import Files, Images
from .task import find_set

SENT = 2 * 2**30  # bytes: larger sets are read by each node where it has them

LOOK_SECONDS = 8.0  # for a node to import PyTorch and look for a set; one that is slower tells with its first pack


def send_set(recipe: Recipe, store: Store, cluster: Cluster, *, features: bool) -> Images | None:
    """The set of a recipe in the object store, with the `features` that stand for its images where they were made.

    None for a set that comes with a package, and for one too large: each node must have that, and is asked whether.
    """
    content, by = recipe.task.content, backbone(recipe)
    if content is None:
        return None
    name = (placeless(recipe.task.name), content, by if features else None)
    if name not in cluster.sent:
        cluster.sent[name] = _put(recipe, store, cluster, features=features and by is not None)
    return cluster.sent[name]


def _put(recipe: Recipe, store: Store, cluster: Cluster, *, features: bool) -> Images | None:
    task = recipe.task
    with explained(store.path):
        folder = keep_set(task.name, str(task.content), cache_of(store), most=SENT)
    if folder is None:
        cluster.on_each_node(find_set, task.__dict__, seconds=LOOK_SECONDS)
        return None
    put = cluster.ray.put
    return Images(folder.name, put(_read(folder.iterdir())), put(_read(_seen(recipe))) if features else None)


def _seen(recipe: Recipe) -> list[Path]:
    channels = load_task(**recipe.task.__dict__, decode=False).train.images.shape[1]
    return features_files(recipe.model, recipe.plan.weights, channels, str(recipe.task.content))


def _read(paths: Iterable[Path]) -> Files:
    return {path.name: np.fromfile(path, np.uint8) for path in paths}
