"""`load_task`: a set by name, imbalanced as asked, as a `Task`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ..core import EquipoiseError, Spec, checks, known
from ..core.escaping import visible
from .cache import cached_source, keep_source
from .class_sizes import draw, long_tailed_counts, step_counts
from .decode import DataError
from .features import Features
from .place import has_place, placeless
from .sources import Source, data_folders
from .split import split_by_class, split_by_group
from .task import Split, Task

Through = Callable[[Source], Source]
IMBALANCES = {"long_tailed": long_tailed_counts, "step": step_counts}


def load_task(
    name: str,
    *,
    imbalance: str | None = None,
    ratio: float = 1.0,
    valid: float = 0.1,
    n_max: int | None = None,
    valid_per_class: int | None = None,
    test: bool = True,
    content: str | None = None,
    seed: int = 0,
    root: str | Path | None = None,
    cache: Path | None = None,
    decode: bool = True,
    through: Through | None = None,
) -> Task:
    """The set called `name` with a validation set carved from train; the test set is always the official one.

    Where the set has validation images of its own, those are taken and none are carved.

    The order in which images are drawn depends on `seed` alone. So with one seed the validation images never meet
    training images of another ratio, and a more imbalanced set is a part of a less imbalanced one.

    Args:
        name: a registered task, with its parameters where it has any: ``folder(path='photos', size=64)``.
            ``equipoise tasks`` lists them.
        imbalance: "long_tailed", "step", or None for all images.
        ratio: largest class over smallest, at least 1.
        valid: share of each class's training images held out for validation, in [0, 1), at least one image of
            each class; they get the same imbalance. 0 gives an empty validation set.
        n_max: at most so many training images of a class. The largest class of an imbalanced set otherwise has as
            many as the smallest class of the original has.
        valid_per_class: instead of a share, so many of the images that each class has left, for classes too small
            for shares; a class of no more than these keeps them all to train on, and is not in the validation set.
        test: False leaves the test set empty, so that whatever is done with the task cannot look at it.
        content: what the data must be, as `Task.content` tells it; anything else is an error.
        seed: decides which images are drawn.
        root: the folder of the files; by default ``$EQUIPOISE_DATA``, the user's cache folder, then the system's.
        cache: a folder for a copy of the images that processes map and share; by default they are read into memory.
        decode: False leaves the images of a folder in their files, for who only wants to count them.
        through: what is done to the whole set, its images still in their files, before any are drawn. With `content`
            it is done once for many seeds.

    Example:
        >>> task = load_task("blobs", imbalance="long_tailed", ratio=100, valid=0)
        >>> task.class_counts
        tensor([500,  50,   5])
    """
    check_task(name, imbalance, ratio, valid, n_max, valid_per_class, test, content, seed)
    if through is None:
        source = _source(name, root, cache, content, decode)
    else:
        source = _seen(through, name, root, cache, content)
    if source.valid is not None and valid_per_class:
        raise EquipoiseError(
            f"{name} has validation images of its own, so valid_per_class takes none from train: leave it out"
        )
    if source.groups is not None and valid_per_class:
        raise EquipoiseError(
            f"valid_per_class would tear the groups of {name} apart: leave it out, and say a share with valid=0.1"
        )
    names = source.class_names
    share = 0.0 if valid_per_class or source.valid is not None else valid
    labels = source.train.labels.numpy()
    if source.groups is None:
        held_out, pools = split_by_class(labels, len(names), share, seed)
    else:
        held_out, pools = split_by_group(labels, source.groups, len(names), share, seed)
    _check_pools(name, names, held_out, pools, share)
    counts = _counts(_sizes(pools), imbalance, ratio, n_max)
    chosen = draw(pools, counts, names)
    held = np.empty(0, np.int64)
    if valid_per_class:
        few = [pool[:valid_per_class] for pool, n in zip(pools, counts, strict=True) if n > valid_per_class]
        held = np.sort(np.concatenate([held, *few]))
        chosen = np.setdiff1d(chosen, held)
    elif share:
        held = _held(held_out, imbalance, ratio)
    given = source.valid if valid else None
    return Task(
        name=name,
        train=source.train.take(torch.from_numpy(chosen)),
        valid=source.train.take(torch.from_numpy(held)) if given is None else given,
        test=source.test if test else _empty(source.test),
        class_names=names,
        fingerprint=_fingerprint(name, source.content, chosen, held if given is None else np.arange(len(given))),
        content=source.content,
    )


def _held(pools: Sequence[NDArray[np.int64]], imbalance: str | None, ratio: float) -> NDArray[np.int64]:
    """Validation images, with the imbalance of train and at least one of each class that has any."""
    pools = [pool for pool in pools if len(pool)]
    if not pools:
        return np.empty(0, np.int64)
    counts = [max(1, n) for n in _counts(_sizes(pools), imbalance, ratio, None)]
    return np.sort(np.concatenate([pool[:n] for pool, n in zip(pools, counts, strict=True)]))


def _source(name: str, root: str | Path | None, cache: Path | None, content: str | None, decode: bool) -> Source:
    if not decode:
        return _opened(name, root, content)
    if has_place(name) and content is None:  # the user's own data may have changed since it was read
        content = _opened(name, root, None).content
    return _read(name, root, data_folders(root), cache, content)


def _seen(through: Through, name: str, root: str | Path | None, cache: Path | None, content: str | None) -> Source:
    if has_place(name) and content is None:  # as above
        return through(_opened(name, root, None))
    return _seen_once(through, name, root, data_folders(root), cache, content)


@lru_cache(maxsize=2)
def _seen_once(
    through: Through,
    name: str,
    root: str | Path | None,
    folders: tuple[Path, ...],
    cache: Path | None,
    content: str | None,
) -> Source:
    kept = cache is not None and content is not None and (cache / _copy_of(name, content)).exists()
    return through(_read(name, root, folders, cache, content) if kept else _opened(name, root, content))


def _opened(name: str, root: str | Path | None, content: str | None) -> Source:
    """The set as it lies there; images in files are left there."""
    source = _built(name, root) if has_place(name) else _published(name, root, data_folders(root))
    if content is not None and source.content != content:
        raise DataError(
            f"the images of {visible(name)} are not those that were asked for: their content is {source.content}, not "
            f"{content}. Images, classes or their order have changed since: put them back as they were, or begin anew "
            "in another folder, with --out"
        )
    return source


def _built(name: str, root: str | Path | None) -> Source:
    source: Source = Spec.parse(name).build("task", root=root)
    return source


@lru_cache(maxsize=4)
def _published(name: str, root: str | Path | None, folders: tuple[Path, ...]) -> Source:
    """Sets that nobody changes are looked through once for many seeds; the environment may change the `folders`."""
    return _built(name, root)


@lru_cache(maxsize=4)
def _read(
    name: str, root: str | Path | None, folders: tuple[Path, ...], cache: Path | None, content: str | None
) -> Source:
    """Files are read once for many seeds; `folders` is here because the environment may change what is found."""
    if cache is None:
        return _opened(name, root, content).in_memory()
    if content is None:
        content = _opened(name, root, None).content
    which = _copy_of(name, content) if content else _named(f"{name} {folders}")
    return cached_source(cache / which, lambda: _opened(name, root, content))


def keep_set(name: str, content: str, cache: Path, most: int) -> Path | None:
    """A copy of the whole set in a folder below `cache`, for machines that have not got its files.

    Where such a copy lies below the `cache` of `load_task`, nothing else is looked for. None where the images take
    more than `most` bytes, or are streamed.
    """
    source, folder = _opened(name, None, content), cache / _copy_of(name, content)
    if source.streamed or source.nbytes > most:
        return None
    keep_source(folder, lambda: source)
    return folder


def _copy_of(name: str, content: str) -> str:
    """What a set is decides which copy is its own: one left behind of other images is never met."""
    return _named(f"{placeless(name)} {content}")


def _named(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def _counts(sizes: Sequence[int], imbalance: str | None, ratio: float, n_max: int | None) -> list[int]:
    if imbalance is None:
        return [min(size, n_max or size) for size in sizes]
    largest = min(sizes)
    return IMBALANCES[imbalance](len(sizes), min(largest, n_max or largest), ratio)


def _empty(split: Split) -> Split:
    if isinstance(split.images, Features):
        return split.take(torch.empty(0, dtype=torch.int64))
    # in memory even where the images are on disk: a network can be asked about none of them
    return Split(torch.empty((0, *split.images.shape[1:]), dtype=torch.uint8), split.labels[:0])


def _sizes(pools: Sequence[NDArray[np.int64]]) -> list[int]:
    return [len(pool) for pool in pools]


def _fingerprint(name: str, content: str | None, train: NDArray[np.int64], valid: NDArray[np.int64]) -> str:
    what = f"{placeless(name)} {content}" if content else name
    digest = hashlib.sha256(f"{what} {len(train)} {len(valid)}\n".encode())
    digest.update(train.astype("<i8").tobytes() + valid.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def check_task(
    name: str,
    imbalance: str | None,
    ratio: float,
    valid: float,
    n_max: int | None,
    valid_per_class: int | None = None,
    test: bool = True,
    content: str | None = None,
    seed: int = 0,
) -> None:
    """Refuse what `load_task` cannot do, before any file is read."""
    Spec.parse(name).resolved("task")
    try:
        checks.at_least("ratio (largest class over smallest)", ratio, 1)
        checks.between("valid", valid, 0, 1)
        checks.whole("seed", seed)
        if n_max is not None:
            checks.whole("n_max", n_max, 1)
        if valid_per_class is not None:
            checks.whole("valid_per_class", valid_per_class, 1)
        if not isinstance(test, bool):
            raise ValueError(f"test must be true or false, not {test!r}")
        if not (content is None or isinstance(content, str)):
            raise ValueError(f"content must be the text that Task.content gives, not {content!r}")
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
