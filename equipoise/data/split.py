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
    sizes = [max(1, round(share * len(pool))) if share and len(pool) > 1 else 0 for pool in pools]
    return [p[:n] for p, n in zip(pools, sizes, strict=True)], [p[n:] for p, n in zip(pools, sizes, strict=True)]
