"""The chance that a new run beats another: counts in loops, scipy, and the equation of the interval's ends."""

import math

import numpy as np
import pytest
from scipy import stats

from equipoise.analysis import compare
from equipoise.analysis.statistics.superiority import chance_to_beat

NAN = math.nan
X = np.array([0.713, 0.705, 0.721, 0.698, 0.716, 0.709, 0.702, 0.718])
Y = np.array([0.711, 0.708, 0.716, 0.700, 0.713, 0.710, 0.697, 0.717])


def wins(x, y):
    return float(np.mean([(a > b) + (a == b) / 2 for a, b in zip(x, y, strict=True)]))


def test_scipy_and_statsmodels_count_alike():
    """statsmodels 0.15.0: rank_compare_2indep(X, Y).prob1 = 0.5625, over all pairs; runs of one seed are in it."""
    u = stats.mannwhitneyu(X, Y).statistic
    assert u / 64 == pytest.approx(0.5625)
    assert chance_to_beat(X, Y).value == pytest.approx((u - 8 * wins(X, Y)) / 56)


def test_by_hand():
    # 3 beats 1 and 4 does not; 2 beats 1; 2 is equal to 2: of six pairs of unlike seeds
    found = chance_to_beat([3.0, 2.0, 2.0], [2.0, 1.0, 4.0])
    assert found.value == pytest.approx((1 + 0 + 0.5 + 0 + 0.5 + 1) / 6)


@pytest.mark.parametrize(("x", "y"), [(X, Y), (X + 0.01, Y), (X[:5], Y[:5] - 0.001)])
def test_the_ends_are_z_standard_errors_away(x, y):
    found, n = chance_to_beat(x, y, confidence=0.9), len(x)
    for end in (found.low, found.high):
        spread = (1 - end) / (2 - end) + end / (1 + end)
        error = math.sqrt(end * (1 - end) / n**2 * (1 + (n - 1) * spread))
        assert abs(found.value - end) == pytest.approx(stats.norm.ppf(0.95) * error, abs=1e-6)


def test_all_runs_better_is_no_certainty():
    found = chance_to_beat(X + 1, Y)
    assert found.value == found.high == 1 and 0.6 < found.low < 0.9
    mirrored = chance_to_beat(Y, X + 1)
    assert (mirrored.value, mirrored.high) == (0, pytest.approx(1 - found.low))


def test_missing_runs_and_too_few():
    assert chance_to_beat([1.0, NAN, 3.0], [2.0, 5.0, NAN]).value == pytest.approx(np.mean([0, 1, 0]))
    assert all(math.isnan(v) for v in chance_to_beat([1.0], [2.0]))
    assert all(math.isnan(v) for v in chance_to_beat([1.0, NAN], [NAN, 2.0]))
    with pytest.raises(ValueError, match="paired by position"):
        chance_to_beat([1.0, 2.0], [1.0])


def test_a_verdict_has_it_in_the_metrics_direction():
    up = compare({"plain": Y, "other": X}, "plain").methods
    down = {m.name: m for m in compare({"plain": Y, "other": X}, "plain", metric="nll").methods}
    row = next(m for m in up if m.name == "other")
    assert (row.beats, row.beats_low, row.beats_high) == pytest.approx(chance_to_beat(X, Y))
    assert down["other"].beats == pytest.approx(1 - row.beats)
    assert math.isnan(down["plain"].beats)


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_the_interval_covers(shared):
    """Also where runs of one seed have something in common."""
    rng, truth, covered = np.random.default_rng(0), stats.norm.cdf(1 / math.sqrt(2 + 2 * shared**2)), 0
    for _ in range(300):
        common = shared * rng.normal(size=8)
        found = chance_to_beat(1 + common + rng.normal(size=8), common + rng.normal(size=8))
        covered += found.low <= truth <= found.high
    assert covered / 300 >= 0.93
