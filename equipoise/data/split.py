"""Stratified splits that depend on labels and seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Pools = list[NDArray[np.int64]]


def split_by_class(labels: NDArray[Any], num_classes: int, share: float, seed: int) -> tuple[Pools, Pools]:
    """For each class, the indices of `share` of its images (at least one if share > 0) and of the rest, shuffled.

    Nothing is held out of a class of one image: what is not trained on need not be tested.

    Both come in an order drawn once from `seed`, so the first n of a pool are part of its first n + 1: the images of
    a more imbalanced set are among those of a less imbalanced one.
    """
    # sorting uniform numbers, unlike Generator.shuffle, uses a stream that NumPy has no reason to change
    order = np.random.Generator(np.random.PCG64(seed)).random(len(labels)).argsort(kind="stable")
    pools = [order[labels[order] == c] for c in range(num_classes)]
    sizes = [_wanted(share, len(pool)) for pool in pools]
    return [p[:n] for p, n in zip(pools, sizes, strict=True)], [p[n:] for p, n in zip(pools, sizes, strict=True)]


def _wanted(share: float, size: int) -> int:
    return max(1, round(share * size)) if share and size > 1 else 0


def split_by_group(
    labels: NDArray[Any], groups: NDArray[Any], num_classes: int, share: float, seed: int
) -> tuple[Pools, Pools]:
    """The same, with all images of a group on one side; `groups` has a number for each image.

    Classes come as near to their shares as their groups allow. No class is held out whole, and one that has several
    groups is never left out of what is held out.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    order = random.random(len(labels)).argsort(kind="stable")
    names, member = np.unique(groups, return_inverse=True)
    held = _held_groups(labels, member.reshape(-1), num_classes, share, random.random(len(names)))
    is_held = held[member.reshape(-1)][order]
    pools = [labels[order] == c for c in range(num_classes)]
    return [order[pool & is_held] for pool in pools], [order[pool & ~is_held] for pool in pools]


def _held_groups(
    labels: NDArray[Any], groups: NDArray[Any], num_classes: int, share: float, chance: NDArray[Any]
) -> NDArray[np.bool_]:
    """Which groups are held out: first those that fit in drawn order, then small ones that bring shares nearer."""
    sizes = np.bincount(labels, minlength=num_classes).tolist()
    wanted = [min(_wanted(share, n), n - 1) if n else 0 for n in sizes]
    counts = _counts_by_class(labels, groups, len(chance))
    held, so_far = np.zeros(len(chance), bool), [0] * num_classes

    def take(g: int) -> None:
        held[g] = True
        for c, n in counts[g]:
            so_far[c] += n

    def leaves_some(g: int) -> bool:
        return all(so_far[c] + n < sizes[c] for c, n in counts[g])

    drawn = chance.argsort(kind="stable").tolist()
    if not any(wanted):
        return held
    for g in drawn:
        if all(so_far[c] + n <= wanted[c] for c, n in counts[g]):
            take(g)
    by_size = sorted((g for g in drawn if not held[g]), key=lambda g: sum(n for _, n in counts[g]))
    for g in by_size:
        # the change of the squared distances to the wanted sizes, relative to those
        change = sum(n * (n + 2 * (so_far[c] - wanted[c])) / max(1, wanted[c]) for c, n in counts[g])
        if change < 0 and leaves_some(g):
            take(g)
    for g in by_size:  # rather a class with too large a share than one that is not tested
        if not held[g] and any(wanted[c] and not so_far[c] for c, _ in counts[g]) and leaves_some(g):
            take(g)
    return held


def _counts_by_class(labels: NDArray[Any], groups: NDArray[Any], number: int) -> list[list[tuple[int, int]]]:
    """(class, images) of each group."""
    pairs, images = np.unique(np.stack([groups, labels]), axis=1, return_counts=True)
    counts: list[list[tuple[int, int]]] = [[] for _ in range(number)]
    for g, c, n in zip(*pairs.tolist(), images.tolist(), strict=True):
        counts[g].append((c, n))
    return counts
