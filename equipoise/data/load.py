"""`load_task`: a set by name, imbalanced as asked, as a `Task`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from .. import checks
from ..core import EquipoiseError, card, known
from .imbalance import draw, long_tailed_counts, step_counts
from .sources import Source, data_folders
from .split import split_by_class
from .task import Split, Task

IMBALANCES = {"long_tailed": long_tailed_counts, "step": step_counts}


def load_task(
    name: str,
    *,
    imbalance: str | None = None,
    ratio: float = 1.0,
    valid: float = 0.1,
    n_max: int | None = None,
    seed: int = 0,
    root: str | Path | None = None,
) -> Task:
    """The set called `name` with a validation set carved from train; the test set is always the official one.

    The order in which images are drawn depends on `seed` alone. So with one seed the validation images never meet
    training images of another ratio, and a more imbalanced set is a part of a less imbalanced one.

    Args:
        name: a registered task; ``equipoise tasks`` lists them.
        imbalance: "long_tailed", "step", or None for all images.
        ratio: largest class over smallest, at least 1.
        valid: share of each class's training images held out for validation, in [0, 1), at least one image of
            each class; they get the same imbalance. 0 gives an empty validation set.
        n_max: at most so many training images of a class. The largest class of an imbalanced set otherwise has as
            many as the smallest class of the original has.
        seed: decides which images are drawn.
        root: the folder of the files; by default ``$EQUIPOISE_DATA``, the user's cache folder, then the system's.

    Example:
        >>> task = load_task("blobs", imbalance="long_tailed", ratio=100, valid=0)
        >>> task.class_counts
        tensor([500,  50,   5])
    """
    check_task(name, imbalance, ratio, valid, n_max, seed)
    source = _read(name, root, data_folders(root))
    names = source.class_names

    held_out, pools = split_by_class(source.train.labels.numpy(), len(names), valid, seed)
    _check_pools(name, names, held_out, pools, valid)
    chosen = draw(pools, _counts(_sizes(pools), imbalance, ratio, n_max), names)
    held = np.empty(0, np.int64)
    if valid:
        held = draw(held_out, [max(1, n) for n in _counts(_sizes(held_out), imbalance, ratio, None)], names)
    return Task(
        name=name,
        train=_take(source.train, chosen),
        valid=_take(source.train, held),
        test=source.test,
        class_names=names,
        fingerprint=_fingerprint(name, chosen, held),
    )


@lru_cache(maxsize=4)
def _read(name: str, root: str | Path | None, folders: tuple[Path, ...]) -> Source:
    """Files are read once for many seeds; `folders` is here because the environment may change what is found."""
    source: Source = card(name, "task").factory(root=root)
    return source


def _counts(sizes: Sequence[int], imbalance: str | None, ratio: float, n_max: int | None) -> list[int]:
    if imbalance is None:
        return [min(size, n_max or size) for size in sizes]
    largest = min(sizes)
    return IMBALANCES[imbalance](len(sizes), min(largest, n_max or largest), ratio)


def _sizes(pools: Sequence[NDArray[np.int64]]) -> list[int]:
    return [len(pool) for pool in pools]


def _take(split: Split, index: NDArray[np.int64]) -> Split:
    rows = torch.from_numpy(index)
    return Split(split.images[rows], split.labels[rows])


def _fingerprint(name: str, train: NDArray[np.int64], valid: NDArray[np.int64]) -> str:
    digest = hashlib.sha256(f"{name} {len(train)} {len(valid)}\n".encode())
    digest.update(train.astype("<i8").tobytes() + valid.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def check_task(name: str, imbalance: str | None, ratio: float, valid: float, n_max: int | None, seed: int = 0) -> None:
    """Refuse what `load_task` cannot do, before any file is read."""
    card(name, "task")
    try:
        checks.at_least("ratio (largest class over smallest)", ratio, 1)
        checks.between("valid", valid, 0, 1)
        checks.whole("seed", seed)
        if n_max is not None:
            checks.whole("n_max", n_max, 1)
    except ValueError as error:
        raise EquipoiseError(str(error)) from None
    if valid == 1:
        raise EquipoiseError("valid must be below 1, not 1: nothing would be left to train on; write e.g. valid=0.1")
    if imbalance is not None:
        known("imbalance", imbalance, IMBALANCES)
    if imbalance is None and ratio != 1:
        raise EquipoiseError(f"ratio={ratio} needs a shape; add imbalance='long_tailed' or imbalance='step'")


def _check_pools(
    task: str,
    names: Sequence[str],
    held_out: Sequence[NDArray[np.int64]],
    pools: Sequence[NDArray[np.int64]],
    valid: float,
) -> None:
    for name, held, pool in zip(names, held_out, pools, strict=True):
        if not len(held) + len(pool):
            raise EquipoiseError(f"class {name!r} of {task} has no training image; add some or leave the class out")
        if not len(pool):
            raise EquipoiseError(
                f"all {len(held)} training images of class {name!r} of {task} would be held out for validation; "
                f"lower valid ({valid}) or set it to 0"
            )
