"""What a planned study can show: the chance of a claim, and the difference that so many seeds can find."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .tests import MAX_EXACT, MOST_SEEDS, _t_power, smallest_n_for_claim

FEW_PATTERNS = 8  # with fewer sign patterns in the rejection region the t-test is no good stand-in
DRAWS = 8000  # normal samples of the differences: a chance is known to about one point


def claim_power(n_pairs: int, effect: float, alpha: float = 0.05, comparisons: int = 1) -> float:
    r"""Chance that `compare` claims a method better that truly is, by `effect` standard deviations of the differences.

    The differences are taken for normal, and the other methods for equal to the baseline, so that Holm asks for
    p ≤ alpha / comparisons; if others differ too the chance is higher. Of the :math:`2^{n-1}` patterns that decide, a
    claim needs at most k = ⌊2^{n-1} alpha / comparisons⌋ as extreme as the observed one: those that flip a set of
    differences with a sum of sizes no larger than that of the negative ones. For k below `FEW_PATTERNS` this is counted
    in seeded draws; beyond, the power of a t-test at level k / 2^{n-1} is as good.

    >>> round(claim_power(n_pairs=6, effect=1.0), 2), claim_power(n_pairs=5, effect=10.0)
    (0.35, 0.0)
    """
    level = alpha / comparisons
    if n_pairs < smallest_n_for_claim(alpha, comparisons):
        return 0.0
    if n_pairs <= MAX_EXACT:
        patterns = patterns_within(level, n_pairs)
        if patterns < FEW_PATTERNS:
            return float(claimed(normal_draws(n_pairs) + effect, patterns).mean())
        level = patterns / 2 ** (n_pairs - 1)
    return _t_power(n_pairs, effect, level)


def detectable_effect(n_pairs: int, power: float = 0.8, alpha: float = 0.05, comparisons: int = 1) -> float:
    """The effect, in standard deviations of the differences, that is claimed with chance `power`; inf if none is.

    >>> round(detectable_effect(10), 2), detectable_effect(5)
    (1.0, inf)
    """
    if n_pairs < smallest_n_for_claim(alpha, comparisons):
        return math.inf
    low, high = 0.0, 20.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if claim_power(n_pairs, middle, alpha, comparisons) >= power else (middle, high)
    return high


def pairs_needed(effect: float, power: float = 0.8, alpha: float = 0.05, comparisons: int = 1) -> int | None:
    """The fewest pairs that find this effect with chance `power`; None if that takes more than `MOST_SEEDS`.

    >>> pairs_needed(1.0), pairs_needed(0.01)
    (11, None)
    """
    return fewest_pairs(lambda n: claim_power(n, effect, alpha, comparisons) >= power, alpha, comparisons)


def fewest_pairs(enough: Callable[[int], bool], alpha: float, comparisons: int) -> int | None:
    """The fewest pairs that are `enough`, as all larger numbers are; None if that takes more than `MOST_SEEDS`."""
    low, high = smallest_n_for_claim(alpha, comparisons), MOST_SEEDS + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low if low <= MOST_SEEDS else None


def patterns_within(level: float, n_pairs: int) -> int:
    """How many of the 2^{n-1} sign patterns that decide make up the share `level` of them, rounded down."""
    return math.floor(level * 2 ** (n_pairs - 1) * (1 + 1e-12))


@lru_cache(maxsize=8)
def normal_draws(n_pairs: int) -> Floats:
    """Differences (DRAWS, n_pairs) of mean 0 and standard deviation 1, always the same ones."""
    return np.random.default_rng(0).normal(size=(DRAWS, n_pairs))


def claimed(differences: Floats, patterns: int) -> NDArray[np.bool_]:
    """For each row whether its mean is above 0 and at most so many sign patterns are as extreme, in that direction."""
    sizes = np.sort(np.abs(differences), axis=1)[:, :patterns]  # a larger one is in no set that could be counted
    sums = np.zeros((len(sizes), 1))
    for size in sizes.T:
        sums = np.concatenate([sums, sums + size[:, None]], axis=1)
    negative = np.clip(-differences, 0, None).sum(axis=1, keepdims=True)
    as_extreme = (sums <= negative * (1 + 1e-12)).sum(axis=1)
    is_claimed: NDArray[np.bool_] = (as_extreme <= patterns) & (differences.mean(axis=1) > 0)
    return is_claimed
