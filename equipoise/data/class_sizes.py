"""How many images of each class an imbalanced training set keeps, and which ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core import EquipoiseError, checks


def long_tailed_counts(num_classes: int, n_max: int, ratio: float) -> list[int]:
    """Counts that fall exponentially from `n_max` to ``n_max / ratio``, in label order.

    They are truncated, not rounded, exactly as in the code of the class-balanced loss (Cui et al., CVPR 2019), so
    that CIFAR-10 at ratio 100 has its published 12,406 images.

    >>> long_tailed_counts(10, 5000, 100)
    [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """
    _check(num_classes, n_max, ratio)
    imb = 1 / ratio
    last = max(num_classes - 1, 1)  # a single class is the largest one
    return [int(n_max * imb ** (i / last)) for i in range(num_classes)]


def step_counts(num_classes: int, n_max: int, ratio: float) -> list[int]:
    """`n_max` for the first half of the classes, ``n_max / ratio`` for the second.

    With an odd number of classes the middle one is large (published code loses a class there).

    >>> step_counts(5, 100, 10)
    [100, 100, 100, 10, 10]
    """
    _check(num_classes, n_max, ratio)
    imb = 1 / ratio
    small = num_classes // 2
    return [n_max] * (num_classes - small) + [int(n_max * imb)] * small


def draw(pools: Sequence[NDArray[np.int64]], counts: Sequence[int], class_names: Sequence[str]) -> NDArray[np.int64]:
    """The first ``counts[c]`` indices of ``pools[c]`` of every class c, together and in ascending order."""
    for name, pool, count in zip(class_names, pools, counts, strict=True):
        if count < 1:
            raise EquipoiseError(f"class {name!r} is left with no image; lower the ratio or raise n_max")
        if count > len(pool):
            raise EquipoiseError(f"class {name!r} has {len(pool)} images, {count} were asked for; lower n_max")
    return np.sort(np.concatenate([pool[:count] for pool, count in zip(pools, counts, strict=True)]))


def _check(num_classes: int, n_max: int, ratio: float) -> None:
    checks.whole("num_classes", num_classes, 1)
    checks.whole("n_max", n_max, 1)
    checks.at_least("ratio", ratio, 1)
