"""What a node is sent: the jobs of a load, what the driver's store has of them already, and their images.

The process that receives it watches over a worker and trains nothing. It does without PyTorch, which takes seconds to
import: what needs that is packed once more, and opened by the worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....core.files import CHECKPOINT, features_folder, write_whole
from ....core.whole_folders import locked, written_aside
from ....store import Store
from ..shared import cache_of

if TYPE_CHECKING:
    from ..how import How
    from ..job import Job

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
class Load:
    """The jobs, how they are done, and the layouts of their networks, which the driver has measured."""

    jobs: list[Job]
    how: How
    layouts: dict[str, str]


@dataclass(frozen=True)
class Order:
    """A load for a node. `software` is what the driver has; `images` are those of the jobs, where they are sent."""

    driver: str
    packed: bytes  # a `Load`
    keys: list[str]  # of all runs of the load
    device: str
    is_bf16: bool  # a processor that may not be able to compute so is tried out first
    software: dict[str, str]
    runs: dict[str, dict[str, bytes]]
    checkpoints: dict[str, bytes]
    images: tuple[Images, ...]

    @property
    def load(self) -> Load:
        """Imports PyTorch."""
        found: Load = pickle.loads(self.packed)
        return found


def order_of(load: Load, store: Store, driver: str, software: dict[str, str], images: tuple[Images, ...]) -> Order:
    """What is there of the jobs goes along: a node that takes over goes on from it."""
    recipes = [recipe for job in load.jobs for recipe in job.recipes]
    keys = [recipe.key for recipe in recipes]
    saved = {key: store.scratch(key) / CHECKPOINT for key in keys if not store.has(key)}
    return Order(
        driver,
        pickle.dumps(load),
        keys,
        str(load.how.device),
        any(recipe.plan.precision == "bf16" for recipe in recipes),
        software,
        {key: store.files_of(key) for key in keys if store.has(key)},
        {key: path.read_bytes() for key, path in saved.items() if path.exists()},
        images,
    )


def unpack(order: Order, store: Store, fetch: Any) -> None:
    """On a node: put all of it into an empty store; `fetch` gives what a reference of `images` stands for."""
    for images in order.images:
        put_images(cache_of(store) / images.folder, partial(fetch, images.files))
        if images.features is not None:
            _put_features(fetch(images.features))
    for key, files in order.runs.items():
        store.adopt(key, files)
    for key, content in order.checkpoints.items():
        keep_checkpoint(store, key, content)


def put_images(folder: Path, files: Callable[[], Files]) -> None:
    """Write a folder of `data.cache`, unless it is there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            with written_aside(folder) as aside:
                for name, content in files().items():
                    content.tofile(aside / name)


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
