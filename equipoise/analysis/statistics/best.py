"""The bold numbers of a table: methods that a t-test does not tell from the best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy import special

from .. import _arrays
from .._arrays import Floats
from .._kinds import Array, either_kind


def t_test(a: Array, b: Array, *, paired: bool = False) -> float:
    r"""Two-sided p-value of "two methods have the same mean", from their scores (n,) and (m,).

    .. math:: t = \frac{\bar a - \bar b}{\sqrt{s_a^2 / n + s_b^2 / m}}

    Welch's, which does not take the two spreads for the same; `paired` tests the differences, by position, instead.
    Fewer than two scores of either: NaN, not known. Without any spread, p is 1 for equal means and 0 for others.

    >>> round(t_test([0.70, 0.72, 0.71], [0.74, 0.75, 0.73]), 4)
    0.0213
    """
    x, y = _arrays.finite("a", a), _arrays.finite("b", b)
    if paired:
        if len(x) != len(y):
            raise ValueError(f"paired scores must be equally many, not {len(x)} and {len(y)}")
        x, y = x - y, np.zeros(2)
    if min(len(x), len(y)) < 2:
        return math.nan
    errors = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    difference, error = x.mean() - y.mean(), sum(errors)
    if not error:
        return float(difference == 0)
    freedom = error**2 / (errors[0] ** 2 / (len(x) - 1) + errors[1] ** 2 / (len(y) - 1))
    return float(2 * special.stdtr(freedom, -abs(difference) / math.sqrt(error)))


@either_kind
def not_worse_than_best(
    scores: Array, *, higher_is_better: bool = True, alpha: float = 0.05, paired: bool = False
) -> Any:
    """Which methods to set in bold: the best by its mean, and all that `t_test` does not tell from it at level alpha.

    `scores` (M, n) has a row for each method, NaN where a run is missing; the mask is (M,). A method with a single run
    cannot be told from the best, and is bold; one without runs is not. This is the custom of papers, which do not say
    whether they pair, and none adjusts for the number of methods or for having picked the best by the same scores:
    `compare` does better where a claim is to be made.

    >>> not_worse_than_best([[0.70, 0.72, 0.71], [0.74, 0.75, 0.73], [0.73, 0.75, 0.72]])
    array([False,  True,  True])

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? 2021.
    """
    x = _arrays.host(scores)
    if x.ndim != 2 or not x.size or np.isinf(x).any():
        raise ValueError(f"scores must be finite, or NaN where missing, of shape (methods, runs), not {x.tolist()}")
    known = [row[~np.isnan(row)] for row in x]
    sign = 1 if higher_is_better else -1
    means = [sign * row.mean() if len(row) else -math.inf for row in known]
    best = int(np.argmax(means))
    bold = [bool(len(row)) and not _p(x[best], x[i], paired) <= alpha for i, row in enumerate(known)]
    return torch.tensor(bold, device=scores.device)


def _p(a: Floats, b: Floats, paired: bool) -> float:
    """`t_test` of what is known; NaN is not below any level."""
    both = ~np.isnan(a) & ~np.isnan(b)
    return t_test(a[both], b[both], paired=True) if paired else t_test(a[~np.isnan(a)], b[~np.isnan(b)])
