"""Wilcoxon's signed-rank test, exact for any number of pairs."""

from __future__ import annotations

import numpy as np

from .. import _arrays
from .._arrays import Floats
from .._kinds import Array

_DIGITS = 9  # sizes that differ by less than this share of the largest are ties: means have rounding in them


def signed_rank_test(differences: Array) -> float:
    r"""Two-sided p-value of "the differences (n,) are symmetric about 0", by the ranks of their sizes.

    .. math:: W = \sum_{i: d_i > 0} \operatorname{rank}|d_i|, \qquad
              p = \min\Big(1,\ 2 \min\big(P(W' \le W),\ P(W' \ge W)\big)\Big)

    where W' has each sign at random. Zeros are left out, and equal sizes share their mean rank; the distribution of
    W' is then that of these ranks, and p is exact with them too. No or only zero differences: p = 1.

    >>> signed_rank_test([0.3, 0.1, 0.5, -0.2, 0.4, 0.6])
    0.09375

    Reference: Wilcoxon. Individual Comparisons by Ranking Methods. Biometrics Bulletin 1945.
    """
    d = _arrays.finite("differences", differences)
    largest = np.abs(d).max(initial=0.0)
    sizes = np.round(np.abs(d) / largest, _DIGITS) if largest > 0 else np.zeros_like(d)
    positive, sizes = (d > 0)[sizes > 0], sizes[sizes > 0]
    doubled = np.rint(2 * mean_ranks(sizes)).astype(int)  # whole, also where ranks are shared
    chances = np.ones(1)
    for rank in doubled:
        longer = np.pad(chances, (0, rank))
        chances = (longer + np.roll(longer, rank)) / 2  # that this one has its sign, or not; the padding comes round
    smaller = min(doubled[positive].sum(), doubled[~positive].sum())
    return float(min(1.0, 2 * chances[: smaller + 1].sum()))


def mean_ranks(values: Floats) -> Floats:
    """Ranks from 1, the smallest first; equal values share the mean of theirs.

    >>> mean_ranks(np.array([0.2, 0.1, 0.2]))
    array([2.5, 1. , 2.5])
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (count.cumsum() - (count - 1) / 2)[place]
    return ranks
