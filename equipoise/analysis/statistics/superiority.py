"""How likely a new run of one method beats a new run of another."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from .. import _arrays
from .._kinds import Array


class Chance(NamedTuple):
    """A probability and its interval; nan where it is not known."""

    value: float
    low: float
    high: float


def chance_to_beat(own: Array, other: Array, confidence: float = 0.95) -> Chance:
    r"""P(a new run of `own` scores higher than a new run of `other`), where equal scores count half.

    .. math:: \hat\theta = \frac{1}{\#} \sum_{s \ne t} [x_s > y_t] + \tfrac12 [x_s = y_t]

    Scores (n_seeds,) are paired by position, nan where a run is missing. Runs of one seed are not compared with each
    other: two new runs share no seed. This is the Mann-Whitney statistic but for those pairs. Its interval is
    Newcombe's fifth: its ends are the θ that are z standard errors away from the estimate, with

    .. math:: V(\theta) = \frac{\theta (1 - \theta)}{n_x n_y} \Big(1 + \Big(\frac{n_x + n_y}{2} - 1\Big)
              \Big(\frac{1 - \theta}{2 - \theta} + \frac{\theta}{1 + \theta}\Big)\Big)

    It has an end inside (0, 1) also where all runs of one method are better.

    >>> found = chance_to_beat([0.73, 0.75, 0.71, 0.74], [0.70, 0.71, 0.69, 0.72])
    >>> round(found.value, 3), round(found.low, 2), round(found.high, 2)
    (0.875, 0.45, 0.98)

    Reference: Newcombe. Confidence intervals for an effect size measure based on the Mann-Whitney statistic, part 2.
    Statistics in Medicine, 2006.
    """
    x, y = _arrays.host(own), _arrays.host(other)
    _arrays.inside("confidence", confidence)
    if len(x) != len(y):
        raise ValueError(f"scores are paired by position, but there are {len(x)} and {len(y)}; put nan for a gap")
    wins = np.sign(x[:, None] - y) / 2 + 0.5
    np.fill_diagonal(wins, math.nan)
    counted = wins[~np.isnan(wins)]
    n_x, n_y = int((~np.isnan(x)).sum()), int((~np.isnan(y)).sum())
    if not len(counted) or min(n_x, n_y) < 2:
        return Chance(math.nan, math.nan, math.nan)
    value = float(counted.mean())
    z = float(special.ndtri((1 + confidence) / 2))
    return Chance(value, _end(value, 0.0, z, n_x, n_y), _end(value, 1.0, z, n_x, n_y))


def _end(value: float, side: float, z: float, n_x: int, n_y: int) -> float:
    """The point between the estimate and `side` that is z standard errors away, by halving."""
    near, far = value, side
    for _ in range(50):
        middle = (near + far) / 2
        close = abs(middle - value) <= z * math.sqrt(_variance(middle, n_x, n_y))
        near, far = (middle, far) if close else (near, middle)
    return near


def _variance(theta: float, n_x: int, n_y: int) -> float:
    spread = (1 - theta) / (2 - theta) + theta / (1 + theta)
    return theta * (1 - theta) / (n_x * n_y) * (1 + ((n_x + n_y) / 2 - 1) * spread)
