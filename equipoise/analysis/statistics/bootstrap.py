"""An interval of a mean without a law for the values."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from ...core import checks
from .. import _arrays
from .._arrays import Floats
from .._kinds import Array

DRAWS = 2**22  # random numbers held at once


def bootstrap_interval(
    values: Array, confidence: float = 0.95, *, resamples: int = 9999, seed: int = 0
) -> tuple[float, float]:
    r"""Bootstrap interval of the mean of `values` (n,), bias-corrected and accelerated (BCa); two Python floats.

    .. math:: \alpha' = \Phi\left(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\right)

    Its ends are the quantiles alpha' of the means of n values drawn with replacement. z_0 is the normal quantile of the
    share of these means below the mean of the values (half of those equal to it), and a their skewness, by leaving
    out each value in turn: sum(d^3) / (6 sum(d^2)^1.5), d = x - mean(x).
    Values of one kind have an interval of no width; fewer than two give (nan, nan), not known. With fewer than about
    ten it is too narrow, as every bootstrap is: `mean_interval` is then the better one, if the values are near normal.

    >>> low, high = bootstrap_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 20.0])
    >>> round(low, 1), round(high, 1)
    (4.2, 11.3)

    Reference: Efron. Better Bootstrap Confidence Intervals. JASA 1987.
    """
    x = _arrays.finite("values", values)
    checks.whole("resamples", resamples, 1)
    _arrays.inside("confidence", confidence)
    if len(x) < 2:
        return math.nan, math.nan
    if x.min() == x.max():
        return float(x[0]), float(x[0])
    size = np.abs(x - x.mean()).max()
    d = (x - x.mean()) / size
    means = _means(d, resamples, seed)
    sides = np.sign(means.round(12))  # a mean that differs by rounding is equal
    below = (1 - sides.mean()) / 2
    bias = special.ndtri(np.clip(below, 0.5 / resamples, 1 - 0.5 / resamples))
    skew = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    z = bias + special.ndtri([(1 - confidence) / 2, (1 + confidence) / 2])
    ends = x.mean() + size * np.quantile(means, special.ndtr(bias + z / (1 - skew * z)))
    low, high = ends.clip(x.min(), x.max())  # no mean lies outside; rounding can
    return float(low), float(high)


def _means(x: Floats, resamples: int, seed: int) -> Floats:
    """Means (resamples,) of as many values drawn with replacement."""
    generator = np.random.default_rng(seed)
    rows = max(1, DRAWS // len(x))
    parts = [min(rows, resamples - done) for done in range(0, resamples, rows)]
    return np.concatenate([x[generator.integers(0, len(x), (part, len(x)))].mean(axis=1) for part in parts])
