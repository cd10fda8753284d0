"""Sign-flip tests of many rows at once: rows of one length share their sign patterns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._arrays import Floats
from .tests import MAX_EXACT, _all_sums, _random_sums

AT_ONCE = 64  # rows; 100,000 random patterns of each are 51 MB of sums


def sign_flip_tests(rows: Sequence[Floats], seed: int = 0) -> list[float]:
    """`sign_flip_test` of each row; nan for a row without values, a comparison that cannot be made."""
    p = [math.nan] * len(rows)
    for n in {len(row) for row in rows if len(row)}:
        places = [i for i, row in enumerate(rows) if len(row) == n]
        for start in range(0, len(places), AT_ONCE):
            some = places[start : start + AT_ONCE]
            for i, value in zip(some, _p_values(np.stack([rows[i] for i in some]), seed), strict=True):
                p[i] = value
    return p


def _p_values(rows: Floats, seed: int) -> list[float]:
    """Of rows (R, n), as `sign_flip_test` computes them one at a time."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1)
    sizes = np.sort(np.abs(scaled), axis=1).T
    observed = np.array([abs(math.fsum(row)) for row in scaled])
    exact = rows.shape[1] <= MAX_EXACT
    sums = _all_sums(sizes) if exact else _random_sums(sizes, seed)
    extreme = (np.abs(sums) >= observed - 1e-9 * sizes.sum(axis=0)).sum(axis=0)
    values: list[float] = (extreme / len(sums) if exact else (extreme + 1) / (len(sums) + 1)).tolist()
    return values
