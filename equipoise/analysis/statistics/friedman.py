"""Methods compared over several data sets by their ranks."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from scipy import special
from torch import Tensor

from ...core import checks
from .. import _arrays
from .._kinds import Array, double, either_kind


class Friedman(NamedTuple):
    """What `friedman_test` found: statistic and p-value, and the mean rank of each method (M,), 1 the best."""

    statistic: float
    p: float
    ranks: Array


@either_kind
def friedman_test(scores: Array, *, higher_is_better: bool = True) -> Friedman:
    r"""Test of "on each data set all orders of the methods are as likely": scores (data sets, methods).

    .. math:: \chi^2 = \frac{(M - 1) \sum_m \left(\sum_d r_{dm} - \frac{M + 1}{2}\right)^2}
                            {\sum_{dm} \left(r_{dm} - \frac{M + 1}{2}\right)^2}

    Equal scores share the mean of their ranks, for which the denominator corrects. p is by the chi-square law with
    M - 1 degrees of freedom, good from about ten data sets or five methods on. All scores equal: statistic 0, p = 1.
    Only where p is small does `nemenyi_critical_difference` say which methods differ.

    >>> found = friedman_test([[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.9, 0.7, 0.8], [0.6, 0.5, 0.4]])
    >>> found.statistic, round(found.p, 4), found.ranks
    (6.5, 0.0388, array([1.  , 2.25, 2.75]))

    Reference: Demšar. Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 2006.
    """
    x = double(scores)
    if x.dim() != 2 or x.shape[0] < 2 or x.shape[1] < 2:
        raise ValueError(f"scores must be of two data sets and two methods or more, not of shape {tuple(x.shape)}")
    if not bool(torch.isfinite(x).all()):
        raise ValueError("scores must be finite; leave out a data set or a method of which some are missing")
    ranks = _ranks(-x if higher_is_better else x)
    methods = x.shape[1]
    off = ranks - (methods + 1) / 2
    between, total = torch.stack([off.sum(dim=0).square().sum(), off.square().sum()]).tolist()
    statistic = (methods - 1) * between / total if total else 0.0
    return Friedman(statistic, float(special.chdtrc(methods - 1, statistic)), ranks.mean(dim=0))


def _ranks(x: Tensor) -> Tensor:
    """Rank of each value within its row, the smallest 1, equal ones the mean of theirs."""
    others, own = x[:, None, :], x[:, :, None]
    return double((others < own).sum(dim=2)) + (1 + double((others == own).sum(dim=2))) / 2


def nemenyi_critical_difference(methods: int, datasets: int, alpha: float = 0.05) -> float:
    r"""Methods differ, at level alpha over all their pairs, where their mean ranks do by this much or more.

    .. math:: \mathrm{CD} = \frac{q_\alpha(M, \infty)}{\sqrt 2} \sqrt{\frac{M (M + 1)}{6 D}}

    q is the quantile of the studentized range of M groups.

    >>> round(nemenyi_critical_difference(methods=4, datasets=14), 2)
    1.25

    Reference: Demšar. Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 2006.
    """
    from scipy.stats import studentized_range  # slow to import

    checks.whole("methods", methods, 2)
    checks.whole("datasets", datasets, 1)
    _arrays.inside("alpha", alpha)
    q = float(studentized_range.ppf(1 - alpha, methods, math.inf))
    return q * math.sqrt(methods * (methods + 1) / (12 * datasets))
