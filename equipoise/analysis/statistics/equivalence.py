"""Whether a difference is too small to matter: two one-sided tests against a margin that the user has chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core import checks
from .. import _arrays
from .._arrays import Floats
from .._kinds import Array
from ._flips import AT_ONCE
from .power import FEW_PATTERNS, claimed, fewest_pairs, normal_draws, patterns_within
from .tests import MAX_EXACT, _all_sums, _random_sums, _t_power, smallest_n_for_claim


def equivalence_test(differences: Array, within: float, *, seed: int = 0) -> float:
    r"""p-value of "the mean is `within` or more away from 0", by sign flips of two one-sided tests (TOST).

    .. math:: p = \max(p_+, p_-), \qquad
              p_\pm = \frac{\#\{s \in \{-1, 1\}^n : \sum_i s_i (m \pm d_i) \ge \sum_i (m \pm d_i)\}}{2^n}

    with the margin m. Where p is small, the mean lies between -m and m. It is rounded up to a whole number of 2 / 2^n,
    the steps of `sign_flip_test`, so that a look at so many pairs spends the same on both. Beyond `MAX_EXACT` pairs
    random sign patterns stand in for all. No differences: p = 1.

    >>> equivalence_test([0.001, -0.002, 0.000, 0.001, -0.001, 0.002], within=0.005)
    0.03125

    Reference: Schuirmann. A Comparison of the Two One-Sided Tests Procedure and the Power Approach. 1987.
    """
    d, margin = _arrays.finite("differences", differences), checks.above("within", within, 0)
    return equivalence_tests([d], seed, margin)[0] if len(d) else 1.0


def equivalence_tests(rows: Sequence[Floats], seed: int, within: float) -> list[float]:
    """`equivalence_test` of each row, those of one length together; nan for a row without values."""
    p = [math.nan] * len(rows)
    for n in {len(row) for row in rows if len(row)}:
        places = [i for i, row in enumerate(rows) if len(row) == n]
        for start in range(0, len(places), AT_ONCE):
            some = places[start : start + AT_ONCE]
            d = np.stack([rows[i] for i in some])
            for i, value in zip(some, np.maximum(*(_one_sided(within + s * d, seed) for s in (1, -1))), strict=True):
                p[i] = float(value)
    return p


def _one_sided(x: Floats, seed: int) -> Floats:
    """The share of sign patterns whose sum is as large as that of the row: x (R, n) -> (R,)."""
    largest = np.abs(x).max(axis=1, keepdims=True)
    scaled = x / np.where(largest > 0, largest, 1)
    sizes = np.sort(np.abs(scaled), axis=1).T
    observed = np.array([math.fsum(row) for row in scaled]) - 1e-9 * sizes.sum(axis=0)
    if x.shape[1] > MAX_EXACT:
        sums = _random_sums(sizes, seed)
        return np.asarray(((sums >= observed).sum(axis=0) + 1) / (len(sums) + 1))
    sums = _all_sums(sizes)  # half of the patterns; the others are these negated
    extreme = (sums >= observed).sum(axis=0) + (-sums >= observed).sum(axis=0)
    return np.asarray(np.ceil(extreme / 2) / len(sums))


def equality_power(n_pairs: int, within: float, alpha: float = 0.05, comparisons: int = 1) -> float:
    """Chance that a method which truly equals the baseline is shown to, with a margin of `within` standard deviations.

    The differences are taken for normal, and Holm asks for p <= alpha / comparisons. Few sign patterns are counted in
    seeded draws, as in `claim_power`; beyond, t-tests stand in.

    >>> round(equality_power(6, within=2.0), 2), equality_power(5, within=10.0)
    (0.95, 0.0)
    """
    level = alpha / comparisons
    if n_pairs < smallest_n_for_claim(alpha, comparisons):
        return 0.0
    if n_pairs <= MAX_EXACT:
        steps = patterns_within(level, n_pairs)
        if 2 * steps < FEW_PATTERNS:
            d = normal_draws(n_pairs)
            return float((claimed(within + d, 2 * steps) & claimed(within - d, 2 * steps)).mean())
        level = steps / 2 ** (n_pairs - 1)
    return max(0.0, 2 * _t_power(n_pairs, within, 2 * level) - 1)  # either side fails alone, unless both have no chance


def pairs_for_equality(within: float, power: float = 0.8, alpha: float = 0.05, comparisons: int = 1) -> int | None:
    """The fewest pairs that show equality with chance `power`; None if that takes more than `MOST_SEEDS`.

    >>> pairs_for_equality(1.0), pairs_for_equality(0.01)
    (11, None)
    """
    return fewest_pairs(lambda n: equality_power(n, within, alpha, comparisons) >= power, alpha, comparisons)
