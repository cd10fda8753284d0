"""The same methods on several data sets: what they say together, and how far they agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import special

from .. import _arrays
from .._arrays import Floats
from .._kinds import Array
from ._paired import Paired
from .priority import ALL_METRICS
from .signed_rank import mean_ranks, signed_rank_test
from .tests import holm, mean_interval

Standing = Literal["better", "worse", "not separable", "too few data sets", "baseline", "no data"]

LEAST = 3  # data sets, below which a mean over them has no interval worth the name
LEAST_SEEDS = 6  # on each, below which Welch's test claims too often that they differ


class MeanEffect(NamedTuple):
    """A mean over data sets with its interval and p-value; `tau` is the standard deviation of the true effects.

    A further data set of this kind, with as many seeds, would show an effect between `next_low` and `next_high`.
    """

    mean: float
    low: float
    high: float
    p: float
    tau: float
    next_low: float
    next_high: float


def mean_effect(effects: Array, errors: Array, confidence: float = 0.95) -> MeanEffect:
    r"""Combine the effects (K,) found on K data sets, with their standard errors, in a random-effects model.

    .. math:: y_k = \mu + u_k + e_k, \qquad \operatorname{Var} u_k = \tau^2, \qquad
              \operatorname{Var} e_k = v_k

    .. math:: \hat\mu = \bar y, \qquad \bar y \pm t_{K-1}\, s / \sqrt K, \qquad
              \hat\tau^2 = \max(0,\ s^2 - \bar v), \qquad
              \bar y \pm t_{K-1}\, s \sqrt{1 + 1 / K}

    Each data set counts the same, so the mean is that over data sets, however many images or seeds each has. This is
    Hartung and Knapp's interval with equal weights, and τ² is Hedges and Olkin's estimate. Weights of 1 / (v + τ²),
    as usual in medicine, must be estimated from a handful of seeds here, and their intervals hold the truth too
    rarely (docs/results/combined.md). With equal weights the test is valid whatever the variances are (Bakirov
    and Székely), up to levels of 8 %.

    With fewer than three data sets only the mean is known. `errors` serve for τ alone; where one is NaN, so is τ.

    >>> found = mean_effect([0.02, 0.05, 0.03, 0.06], [0.005, 0.004, 0.006, 0.005])
    >>> [round(float(x), 3) for x in found]
    [0.04, 0.011, 0.069, 0.022, 0.018, -0.025, 0.105]

    References:
        Hartung, Knapp. On Tests of the Overall Treatment Effect in Meta-Analysis. Statistics in Medicine 2001.
        Hedges, Olkin. Statistical Methods for Meta-Analysis. 1985.
        Bakirov, Székely. Student's t-test for Gaussian Scale Mixtures. J. Math. Sciences 2006.
    """
    y, se = _arrays.finite("effects", effects), _arrays.host(errors)
    mean, count = float(y.mean()) if len(y) else math.nan, len(y)
    if count < LEAST:
        return MeanEffect(mean, *[math.nan] * 6)
    spread = float(y.std(ddof=1))
    reach = float(special.stdtrit(count - 1, (1 + confidence) / 2)) * spread
    half, next_half = reach / math.sqrt(count), reach * math.sqrt(1 + 1 / count)
    return MeanEffect(
        mean=mean,
        low=mean - half,
        high=mean + half,
        p=_t_test(mean, spread / math.sqrt(count), count - 1),
        tau=math.sqrt(max(0.0, spread**2 - float((se**2).mean()))) if np.isfinite(se).all() else math.nan,
        next_low=mean - next_half,
        next_high=mean + next_half,
    )


def _t_test(mean: float, error: float, freedom: int) -> float:
    """Two-sided p of a mean with its standard error."""
    if mean == 0:
        return 1.0
    return float(2 * special.stdtr(freedom, -abs(mean) / error)) if error > 0 else 0.0


def unlike_test(groups: Sequence[Floats]) -> float:
    r"""p-value of "all groups have one mean", by Welch's test: K groups of differences, of unlike sizes and variances.

    .. math:: F = \frac{\sum_k w_k (\bar x_k - \tilde x)^2 / (K - 1)}{1 + 2 (K - 2) \Lambda / (K^2 - 1)}, \qquad
              w_k = \frac{n_k}{s_k^2}, \qquad \Lambda = \sum_k \frac{(1 - w_k / W)^2}{n_k - 1}

    with :math:`W = \sum_k w_k`, :math:`\tilde x = \sum_k w_k \bar x_k / W`, and K - 1 and (K² - 1) / (3 Λ) degrees of
    freedom. It is Cochran's test of heterogeneity, corrected for variances that are estimated from a few seeds. NaN for
    fewer than two groups, or where one has a single value or no variance.

    Reference: Welch. On the Comparison of Several Mean Values: An Alternative Approach. Biometrika 1951.
    """
    count = len(groups)
    if count < 2 or any(len(x) < 2 or not x.std() > 0 for x in groups):
        return math.nan
    n, means = np.array([len(x) for x in groups]), np.array([x.mean() for x in groups])
    weights = n / np.array([x.var(ddof=1) for x in groups])
    centre = (weights * means).sum() / weights.sum()
    between = (weights * (means - centre) ** 2).sum() / (count - 1)
    lacking = ((1 - weights / weights.sum()) ** 2 / (n - 1)).sum()
    f = between / (1 + 2 * (count - 2) / (count**2 - 1) * lacking)
    return float(special.fdtrc(count - 1, (count**2 - 1) / (3 * lacking), f))


@dataclass(frozen=True)
class Effect:
    """A method's difference to the baseline on one data set: the mean over `n` paired seeds, with its 95 % interval."""

    data: str
    n: int
    mean: float
    low: float
    high: float
    error: float


@dataclass(frozen=True)
class CombinedMethod:
    """A method over the data sets on which it has pairs with the baseline: `effects` of each, `mean` of all.

    `p_holm` is adjusted for the number of methods. `p_unlike` is of the test that the effect is the same on all data
    sets; NaN where one has fewer than six pairs. `against` are those on which the effect surely has the other sign than
    the mean (by a t interval of confidence 1 - alpha / K). `rank` is the mean rank, 1 the best, over the data sets that
    have all methods.
    """

    name: str
    effects: tuple[Effect, ...]
    mean: float
    low: float
    high: float
    p: float
    p_holm: float
    tau: float
    next_low: float
    next_high: float
    p_unlike: float
    standing: Standing
    against: tuple[str, ...]
    ranks: Mapping[str, float]

    @property
    def rank(self) -> float:
        return float(np.mean(list(self.ranks.values()))) if self.ranks else math.nan

    def effect_on(self, data: str) -> Effect | None:
        return next((effect for effect in self.effects if effect.data == data), None)


@dataclass(frozen=True)
class CombinedPair:
    """`first` minus `second` over the `n` data sets that have both: its mean, and how often it is better and worse.

    `p` is of Wilcoxon's signed-rank test over data sets, `p_holm` adjusted for all pairs.
    """

    first: str
    second: str
    n: int
    mean: float
    better: int
    worse: int
    p: float
    p_holm: float


@dataclass(frozen=True)
class Combined:
    """What several data sets say of the same methods; `methods` are ranked by their mean effect, best first."""

    baseline: str
    metric: str
    higher_is_better: bool
    alpha: float
    data: tuple[str, ...]
    methods: tuple[CombinedMethod, ...]
    pairs: tuple[CombinedPair, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has no nan: None instead."""
        plain: dict[str, Any] = _without_nan(asdict(self))
        for row, method in zip(plain["methods"], self.methods, strict=True):
            row["rank"] = _without_nan(method.rank)
        return plain


def combine_scores(
    scores: Mapping[str, Mapping[str, Array]],
    baseline: str,
    *,
    metric: str = "balanced_accuracy",
    higher_is_better: bool | None = None,
    alpha: float = 0.05,
) -> Combined:
    """Judge methods over data sets: `scores` by data set, then by method, (n_seeds,) paired by position.

    A nan is a run that is not there. A method counts on the data sets where it shares seeds with the baseline. Its mean
    over them is "better" or "worse" where the p-value of `mean_effect`, after Holm over the methods, is at most alpha.

    >>> scores = {d: {"a": [0.7, 0.8], "b": [0.7 + gain, 0.81 + gain]} for d, gain in zip("xyz", (0.02, 0.03, 0.04))}
    >>> found = combine_scores(scores, baseline="a")
    >>> [(m.name, round(m.mean, 3), m.standing) for m in found.methods]
    [('b', 0.035, 'better'), ('a', nan, 'baseline')]
    """
    _arrays.inside("alpha", alpha)
    if higher_is_better is None:
        higher_is_better = ALL_METRICS[metric].higher_is_better if metric in ALL_METRICS else True
    sign = 1 if higher_is_better else -1
    paired = {data: Paired(of_data, baseline, None, None) for data, of_data in scores.items()}
    names = list(dict.fromkeys(name for of_data in scores.values() for name in of_data))
    ranks = _ranks(paired, names, baseline, sign)
    methods = [_method(name, paired, baseline, ranks[name], alpha) for name in names]
    adjusted = holm([method.p for method in methods]).tolist()
    judged = [
        replace(m, p_holm=p, standing=_standing(m, baseline, p, sign, alpha))
        for m, p in zip(methods, adjusted, strict=True)
    ]
    judged.sort(key=lambda m: math.inf if not m.effects and m.name != baseline else -sign * _or_zero(m.mean))
    pairs = _pairs([m.name for m in judged], paired, sign)
    return Combined(baseline, metric, higher_is_better, alpha, tuple(scores), tuple(judged), pairs)


def _method(
    name: str, paired: Mapping[str, Paired], baseline: str, ranks: Mapping[str, float], alpha: float
) -> CombinedMethod:
    """All that is said of a method alone, before it is adjusted for the others."""
    gains = {} if name == baseline else _gains(name, baseline, paired)
    effects = tuple(
        Effect(data, len(x), float(x.mean()), *mean_interval(x, 1 - alpha), _error(x)) for data, x in gains.items()
    )
    effect = mean_effect([e.mean for e in effects], [e.error for e in effects], 1 - alpha)
    sides = {data: _side(x, 1 - alpha / len(gains)) for data, x in gains.items()}
    against = tuple(data for data, side in sides.items() if side * effect.mean < 0)
    return CombinedMethod(
        name=name,
        effects=effects,
        **effect._asdict(),
        p_holm=math.nan,
        p_unlike=_unlike(list(gains.values())),
        standing="no data",
        against=against,
        ranks=ranks,
    )


def _unlike(gains: Sequence[Floats]) -> float:
    """Not known from few seeds: with three on each of 15 equal data sets the test finds differences in a quarter."""
    return unlike_test(gains) if all(len(x) >= LEAST_SEEDS for x in gains) else math.nan


def _gains(name: str, other: str, paired: Mapping[str, Paired]) -> dict[str, Floats]:
    """Score minus the other's, seed by seed, of the data sets where they share any."""
    both = {data: p.differences(name, other) for data, p in paired.items() if {name, other} <= p.runs.keys()}
    return {data: x for data, x in both.items() if len(x)}


def _error(x: Floats) -> float:
    return float(x.std(ddof=1)) / math.sqrt(len(x)) if len(x) > 1 else math.nan


def _side(x: Floats, confidence: float) -> int:
    """1 or -1 where the mean is surely above or below 0; else 0."""
    low, high = mean_interval(x, confidence)
    return int(low > 0) - int(high < 0)


def _standing(method: CombinedMethod, baseline: str, p: float, sign: int, alpha: float) -> Standing:
    if method.name == baseline:
        return "baseline"
    if not method.effects:
        return "no data"
    if len(method.effects) < LEAST:
        return "too few data sets"
    if p > alpha:
        return "not separable"
    return "better" if sign * method.mean > 0 else "worse"


def _ranks(paired: Mapping[str, Paired], names: Sequence[str], baseline: str, sign: int) -> dict[str, dict[str, float]]:
    """Of each method on each data set that has all of them, by its mean difference to the baseline."""
    ranks: dict[str, dict[str, float]] = {name: {} for name in names}
    for data, p in paired.items():
        gains = [p.differences(name, baseline) if name in p.runs else np.empty(0) for name in names]
        if all(map(len, gains)):
            for name, rank in zip(names, mean_ranks(np.array([-sign * x.mean() for x in gains])), strict=True):
                ranks[name][data] = float(rank)
    return ranks


def _pairs(names: Sequence[str], paired: Mapping[str, Paired], sign: int) -> tuple[CombinedPair, ...]:
    both = list(combinations(names, 2))
    means = [np.array([x.mean() for x in _gains(a, b, paired).values()]) for a, b in both]
    p = [signed_rank_test(x) if len(x) else math.nan for x in means]
    return tuple(
        CombinedPair(
            first,
            second,
            n=len(x),
            mean=float(x.mean()) if len(x) else math.nan,
            better=int((sign * x > 0).sum()),
            worse=int((sign * x < 0).sum()),
            p=alone,
            p_holm=together,
        )
        for (first, second), x, alone, together in zip(both, means, p, holm(p).tolist(), strict=True)
    )


def _or_zero(x: float) -> float:
    return 0.0 if math.isnan(x) else x


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value
