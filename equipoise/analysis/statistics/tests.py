"""What paired scores of a few runs allow one to say.

Scores come as numpy arrays, sequences or tensors. They are few and are judged on the host: numbers are Python's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

import numpy as np
import torch
from scipy import special

from .. import _arrays
from .._arrays import Floats
from .._kinds import Array, double, either_kind

MAX_EXACT = 14  # pairs; 16,384 sign patterns
RANDOM_FLIPS = 99_999  # with the observed signs 100,000 patterns: p in steps of 0.00001
MOST_SEEDS = 1000  # a difference that needs more is not worth finding


def sign_flip_test(differences: Array, *, seed: int = 0, max_exact: int = MAX_EXACT) -> float:
    r"""Two-sided p-value of "the paired differences (n,) are symmetric about 0", by flipping their signs.

    .. math:: p = \frac{\#\{s \in \{-1, 1\}^n : |\sum_i s_i d_i| \ge |\sum_i d_i|\}}{2^n}

    Up to `max_exact` pairs all sign patterns are counted, so p is exact and at least 2 / 2^n (1 for one pair). Beyond,
    `RANDOM_FLIPS` = m random patterns, of which k are as extreme, give (k + 1) / (m + 1). Sums that differ by less
    than rounding count as ties, so p is never too small. No or only zero differences: p = 1.

    >>> sign_flip_test([0.01, 0.03, 0.02, 0.01, 0.04, 0.02])
    0.03125
    """
    d = _arrays.finite("differences", differences)
    if not d.any():
        return 1.0
    d = d / np.abs(d).max()
    # sorted sizes and an exact sum: the order and the common sign of the differences cannot change p
    sizes, observed = np.sort(np.abs(d)), abs(math.fsum(d))
    exact = len(d) <= max_exact
    sums = _all_sums(sizes) if exact else _random_sums(sizes, seed)
    extreme = int((np.abs(sums) >= observed - 1e-9 * sizes.sum()).sum())
    return extreme / len(sums) if exact else (extreme + 1) / (len(sums) + 1)


def _all_sums(sizes: Floats) -> Floats:
    """Sums of `sizes` over all signs with the first held positive; the others are these negated."""
    sums = sizes[:1]
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _random_sums(sizes: Floats, seed: int) -> Floats:
    flips = np.random.default_rng(seed).integers(0, 2, (RANDOM_FLIPS, len(sizes)), dtype=np.int8)
    return (1.0 - 2.0 * flips) @ sizes


def mean_interval(values: Array, confidence: float = 0.95) -> tuple[float, float]:
    """Student-t interval of the mean of `values` (n,); (nan, nan), not known, for fewer than two values.

    >>> low, high = mean_interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    x = _arrays.finite("values", values)
    if len(x) < 2:
        return math.nan, math.nan
    half = float(special.stdtrit(len(x) - 1, (1 + confidence) / 2) * x.std(ddof=1) / math.sqrt(len(x)))
    return float(x.mean()) - half, float(x.mean()) + half


@either_kind
def holm(p_values: Array) -> Any:
    """Holm-adjusted p-values (m,): where all at or below alpha are claimed, any is false with chance alpha at most.

    The i-th smallest of m is multiplied by m - i + 1 and may not be below an earlier one. NaN, a comparison that
    could not be made, stays NaN and does not count in m.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = double(p_values)
    made = p.argsort()[: int((~p.isnan()).sum())]  # NaN sorts last
    factors = torch.arange(len(made), 0, -1, device=p.device)
    adjusted = torch.full_like(p, torch.nan)
    adjusted[made] = (p[made] * factors).cummax(dim=0).values.clamp(max=1)
    return adjusted


def smallest_n_for_claim(alpha: float = 0.05, comparisons: int = 1) -> int:
    """Fewest pairs n with which any claim is possible: the least p, 2 / 2^n, must be alpha / comparisons or below.

    Holm asks this of the first claim only; but without a first there is no second.

    >>> [smallest_n_for_claim(0.05, comparisons) for comparisons in (1, 2, 5, 10)]
    [6, 7, 8, 9]
    """
    _check_family(alpha, comparisons)
    n = 1
    while comparisons * 2.0 ** (1 - n) > alpha:
        n += 1
    return n


def seeds_needed(differences: Array, alpha: float = 0.05, power: float = 0.8, comparisons: int = 1) -> int | None:
    """Pairs in all that would show a difference such as the one observed, with probability `power`.

    Takes the mean and standard deviation of `differences` for the true ones of a normal distribution, and the power
    of a paired t-test, two-sided at level alpha / comparisons (noncentral t), for that of the sign-flip test; never
    fewer than `smallest_n_for_claim`, where all differences must have one sign. It is a plan for further runs, no
    evidence: a mean over few pairs is itself uncertain, and those that look large tend to shrink.
    None when the observed difference is zero, its spread is not known (fewer than two pairs), or more than
    `MOST_SEEDS` would be needed.

    >>> seeds_needed([0.02, -0.01, 0.03, 0.01])
    17
    """
    d = _arrays.finite("differences", differences)
    least = smallest_n_for_claim(alpha, comparisons)
    if len(d) < 2 or d.mean() == 0:
        return None
    spread = d.std(ddof=1)
    effect = abs(d.mean()) / spread if spread else math.inf
    candidates = range(least, MOST_SEEDS + 1)

    def power_of(n: int) -> float:
        one_sign = special.ndtr(effect) ** n  # with the fewest pairs this is all that the sign-flip test accepts
        return min(_t_power(n, effect, alpha / comparisons), one_sign if n == least else 1.0)

    place = bisect_left(candidates, power, key=power_of)
    return candidates[place] if place < len(candidates) else None


def _t_power(n: int, effect: float, level: float) -> float:
    """Chance that a paired t-test of n pairs sees an effect (mean / sd) in the right direction."""
    threshold = special.stdtrit(n - 1, 1 - level / 2)
    noncentrality = min(effect * math.sqrt(n), 30.0)  # the power is 1 there, and the series is still sound
    return float(1 - special.nctdtr(n - 1, noncentrality, threshold))


def power_note(n_pairs: int, comparisons: int, alpha: float = 0.05) -> str:
    """Whether so many pairs can support any claim, in one sentence: to be read before the runs and after them.

    >>> print(power_note(n_pairs=5, comparisons=1))
    5 pairs cannot support any claim: the least p of an exact sign-flip test is then 2/2^5 = 0.0625, and a claim needs
    p <= 0.05, so at least 6 pairs.
    """
    if n_pairs < 1:
        raise ValueError(f"n_pairs must be at least 1, not {n_pairs!r}")
    least = smallest_n_for_claim(alpha, comparisons)
    need = f"a claim needs p <= {alpha:g}"
    if comparisons > 1:
        level = f"{alpha:g}/{comparisons} = {alpha / comparisons:.3g}"
        need = f"after Holm over {comparisons} comparisons the first claim needs p <= {level}"
    pairs = "1 pair" if n_pairs == 1 else f"{n_pairs} pairs"
    if n_pairs >= least:
        return f"{pairs} can support a claim: {need}, which an exact sign-flip test reaches from {least} pairs on."
    return (
        f"{pairs} cannot support any claim: the least p of an exact sign-flip test is then "
        f"2/2^{n_pairs} = {2.0 ** (1 - n_pairs):.3g}, and {need}, so at least {least} pairs."
    )


def _check_family(alpha: float, comparisons: int) -> None:
    _arrays.inside("alpha", alpha)
    if comparisons < 1:
        raise ValueError(f"comparisons must be at least 1, not {comparisons!r}")
