"""Pictures of the classes that the best method takes for one another. The report shows them, and reads no images."""

from __future__ import annotations

import base64
import io
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from ..analysis import log_softmax
from ..core import EquipoiseError
from ..data import Task, load_task
from ..data.decode import import_pillow
from ..data.place import has_place
from ..report import Collected, Method
from ..report.figures.confusion import worst_pairs
from ..store import Confused, ConfusedPair, Store
from .model import best_method

PAIRS = 3
RECOGNISED, MISTAKEN = 4, 8  # pictures of each class, and of what is mistaken
SIDE = 112  # pixels of a picture, at most
QUALITY = 85


def note_confused(store: Store, collected: Collected) -> None:
    """Write confused.json for a study of a user's own images, unless it is there or the images are not."""
    with suppress(EquipoiseError):  # nothing has finished, or the images have moved or changed: no pictures then
        method = best_method(collected)
        keys = tuple(run.key for run in method.runs if run.finished)
        if _of_own_images(method) and method.confusion and not _is_noted(store, keys):
            store.write(Confused(method.name, keys, _pairs(store, collected, method, keys)), indent=None)


def _of_own_images(method: Method) -> bool:
    task = method.recipe.get("task")
    return bool(task and has_place(task["name"]))


def _is_noted(store: Store, keys: tuple[str, ...]) -> bool:
    with suppress(EquipoiseError):  # a damaged one is written anew
        return store.holds(Confused) and store.document(Confused).keys == keys
    return False


def _pairs(store: Store, collected: Collected, method: Method, keys: tuple[str, ...]) -> tuple[ConfusedPair, ...]:
    labels, said = _said(store, keys)
    task = _seen_task(method)

    def pictures(label: int, taken_for: int, most: int) -> tuple[str, ...]:
        """Of the images with a label that some run took for a class, those that most runs did."""
        rows = np.flatnonzero((labels == label) & (said[:, taken_for] >= 1))
        rows = rows[np.argsort(-said[rows, taken_for], kind="stable")][:most]
        return tuple(_jpeg(image) for image in task.test.take(torch.from_numpy(rows)).dense().images[:])

    names = collected.class_names
    return tuple(
        ConfusedPair(
            names[true],
            names[other],
            share,
            of_true=pictures(true, true, RECOGNISED),
            of_other=pictures(other, other, RECOGNISED),
            mistaken=pictures(true, other, MISTAKEN),
        )
        for share, _, true, other in worst_pairs(method, PAIRS)
    )


def _said(store: Store, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The labels (N,) of the test images; and of each class (N, C) how many runs say it, plus its mean probability.

    The second is less than one, or as good as: it only decides between images of which as many runs say so.
    """
    runs = [store.open_test(key) for key in keys]
    votes = sum(np.eye(run["logits"].shape[1])[run["logits"].argmax(1)] for run in runs)
    likely = sum(np.exp(log_softmax(run["logits"])) for run in runs) / len(runs)
    return runs[0]["labels"], np.asarray(votes + 0.999 * likely)


def _seen_task(method: Method) -> Task:
    """The task as the runs saw it, its images still in their files."""
    run = next(run for run in method.runs if run.finished)
    task = load_task(**method.recipe["task"], seed=run.seed, decode=False)
    if run.record is None or task.fingerprint != run.record.data:
        raise EquipoiseError("the images are not those that the runs saw")
    return task


def _jpeg(image: Tensor) -> str:
    """uint8 (c, h, w) as a small file in base64."""
    pixels = image.permute(1, 2, 0).contiguous().numpy()
    picture = import_pillow().fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    picture.thumbnail((SIDE, SIDE))
    written = io.BytesIO()
    picture.save(written, "JPEG", quality=QUALITY)
    return base64.b64encode(written.getvalue()).decode()
