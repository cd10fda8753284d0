"""What a node is sent: the jobs of a load, what the driver's store has of them already, and their images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....core.files import write_whole
from ....data import copy_source
from ....store import Store
from ....train.embed import features_folder
from ....train.fit import CHECKPOINT
from ..hardware import FILE, layouts
from ..how import How
from ..job import Job, cache_of

Files = Mapping[str, NDArray[np.uint8]]  # content by name


@dataclass(frozen=True)
class Images:
    """A set that the object store holds: a copy below the cache of a store, and features that stand for its images.

    Both are references to `Files`, which a node fetches once.
    """

    folder: str
    files: Any
    features: Any


@dataclass(frozen=True)
class Order:
    """A load for a node. `software` is what the driver has; `images` are those of the jobs, where they are sent."""

    driver: str
    jobs: list[Job]
    how: How
    software: dict[str, str]
    layouts: dict[str, str]
    runs: dict[str, dict[str, bytes]]
    checkpoints: dict[str, bytes]
    images: tuple[Images, ...]


def order_of(
    jobs: list[Job], store: Store, how: How, driver: str, software: dict[str, str], images: Sequence[Images]
) -> Order:
    """What is there of the jobs goes along: a node that takes over goes on from it."""
    keys = [recipe.key for job in jobs for recipe in job.recipes]
    saved = {key: store.scratch(key) / CHECKPOINT for key in keys if not store.has(key)}
    return Order(
        driver,
        jobs,
        how,
        software,
        layouts(store),
        {key: store.files_of(key) for key in keys if store.has(key)},
        {key: path.read_bytes() for key, path in saved.items() if path.exists()},
        tuple(images),
    )


def unpack(order: Order, store: Store, fetch: Any) -> None:
    """On a node: put all of it into an empty store; `fetch` gives what a reference of `images` stands for."""
    for images in order.images:
        copy_source(cache_of(store) / images.folder, partial(fetch, images.files))
        if images.features is not None:
            _put_features(fetch(images.features))
    store.write_json(FILE, {"layouts": order.layouts})
    for key, files in order.runs.items():
        store.adopt(key, files)
    for key, content in order.checkpoints.items():
        keep_checkpoint(store, key, content)


def _put_features(features: Files) -> None:
    """Where a study looks for them; files are named by what they hold."""
    folder = features_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in features.items():
        if not (folder / name).exists():
            write_whole(folder / name, content.tobytes())


def keep_checkpoint(store: Store, key: str, content: bytes) -> None:
    store.scratch(key).mkdir(parents=True, exist_ok=True)
    write_whole(store.scratch(key) / CHECKPOINT, content)
