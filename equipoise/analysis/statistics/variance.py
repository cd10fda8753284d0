"""Where the variance of a score comes from: the training seed, the subset drawn to train on, the finite test set."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from .._kinds import Array, double, either_kind


class NestedVariance(NamedTuple):
    """Variances of a score: between seeds on one subset, and between subsets beyond what their seeds explain."""

    seed: Array
    subset: Array


class VarianceSplit(NamedTuple):
    """Variances of the accuracy of one run, which add up to that of a run with everything drawn anew."""

    seed: Array
    subset: Array
    test: Array


@either_kind
def nested_variance(scores: Array) -> NestedVariance:
    r"""Split the variance of any score by seed and subset: scores (subsets, seeds), other seeds on each subset.

    .. math:: x_{ds} = \mu + a_d + b_{ds}, \qquad
              \hat\sigma_b^2 = \frac{\sum_{ds} (x_{ds} - \bar x_d)^2}{D (S - 1)}, \qquad
              \hat\sigma_a^2 = \max\Big(0, \frac{\sum_d (\bar x_d - \bar x)^2}{D - 1} - \frac{\hat\sigma_b^2}{S}\Big)

    One seed a subset: both are NaN, as they cannot be told apart. One subset: its own is NaN. On one test set, "seed"
    holds what networks differ in on these samples by luck; `variance_split` takes that out.

    >>> split = nested_variance([[1.0, 3.0], [5.0, 7.0]])
    >>> split.seed, split.subset
    (2.0, 7.0)

    Reference: Searle, Casella, McCulloch. Variance Components. 1992.
    """
    x = double(scores)
    if x.dim() != 2 or not x.numel() or not bool(x.isfinite().all()):
        raise ValueError(f"scores must be finite numbers of shape (subsets, seeds), not {x.tolist()}")
    seed = _spread(x, dim=1).mean()
    return NestedVariance(seed, (_spread(x.mean(dim=1), dim=0) - seed / x.shape[1]).clamp(min=0))


@either_kind
def variance_split(right: Array) -> VarianceSplit:
    r"""Split the variance of accuracy by seed, subset and test set: right (subsets, seeds, N), true where correct.

    All runs are judged on the same N samples, so their scores share its luck, and differ by their own luck on it.

    .. math:: x_{dsi} = \mu + a_d + b_{ds} + t_i + u_{di} + e_{dsi}

    seed = σ_b² is the variance of accuracies over seeds less E / N, and subset = σ_a² that of their means over subsets
    less U / N and σ_b² / S. E and U are mean squares of interaction: of x within a subset, and of its means over seeds,
    when the means of runs and of samples are taken out (expected σ_e², and σ_u² + σ_e² / S). An estimate below 0 is
    given as 0. test = mean of x̄ (1 - x̄) / (N - 1) is the binomial variance of one run's accuracy; a comparison of
    methods on the same test set feels only the part they do not share.
    What cannot be told is NaN: seed and subset with one seed, subset with one subset, all with one sample.

    >>> import numpy as np
    >>> right = np.random.default_rng(0).random((5, 4, 1000)) < 0.8  # only the test set matters here
    >>> [round(float(v) ** 0.5, 4) for v in variance_split(right)]
    [0.0, 0.0, 0.0127]

    Reference: Bouthillier et al. Accounting for Variance in Machine Learning Benchmarks. MLSys 2021.
    """
    x = double(right)
    if x.dim() != 3 or not x.numel() or not bool(((x == 0) | (x == 1)).all()):
        raise ValueError(f"right must be true or false of shape (subsets, seeds, N), not a value of {tuple(x.shape)}")
    seeds, n = x.shape[1:]
    accuracy, of_subset = x.mean(dim=2), x.mean(dim=1)
    seed = _spread(accuracy, dim=1).mean() - _interaction(x).mean() / n
    subset = _spread(accuracy.mean(dim=1), dim=0) - _interaction(of_subset[None]).squeeze() / n - seed / seeds
    test = (accuracy * (1 - accuracy)).mean() / (n - 1)  # 0 / 0 of one sample
    return VarianceSplit(seed.clamp(min=0), subset.clamp(min=0), test)


def _spread(x: Tensor, dim: int) -> Tensor:
    """Unbiased variance; NaN of one value."""
    return x.var(dim=dim) if x.shape[dim] > 1 else x.sum(dim=dim) * math.nan


def _interaction(x: Tensor) -> Tensor:
    """Mean square of each table (rows, N) without its row and column means: x (tables, rows, N) -> (tables,)."""
    rows, n = x.shape[1:]
    rest = x - x.mean(dim=1, keepdim=True) - x.mean(dim=2, keepdim=True) + x.mean(dim=(1, 2), keepdim=True)
    freedom = (rows - 1) * (n - 1)
    return rest.square().sum(dim=(1, 2)) / freedom if freedom else x.sum(dim=(1, 2)) * math.nan
