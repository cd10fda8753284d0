"""Whether trainings were long enough: the numbers by hand, and how often the answer is wrong."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

from equipoise.analysis.statistics.convergence import ALPHA, Gain, gain_of, learned_share

NAN = math.nan


def test_the_gain_is_over_what_the_additive_model_expects():
    # means of plain 0.4, focal 0.6; of the seeds 0.4, 0.5, 0.6; of all 0.5: residuals ±0.02 at the last two seeds
    scores = {"plain": [0.3, 0.42, 0.48], "focal": [0.5, 0.58, 0.72]}
    found = gain_of(scores, "plain", 1, longer=0.7, higher_is_better=True, tests=2)
    assert found.gain == pytest.approx(0.7 - (0.4 + 0.5 - 0.5))
    assert found.mistakes == pytest.approx(0.6)
    spread = math.sqrt(4 * 0.02**2 / 2)  # of (2 - 1)(3 - 1) degrees of freedom
    expected = stats.t.ppf(1 - 0.05 / 2, 2) * spread * math.sqrt(1 + 1 / 3 + 1 / 2 - 1 / 6)
    assert found.by_chance == pytest.approx(expected)


def test_where_lower_is_better_less_is_a_gain():
    found = gain_of({"a": [2.0, 2.2], "b": [1.0, 1.2]}, "a", 0, longer=1.5, higher_is_better=False)
    assert found.gain == pytest.approx(0.5) and found.mistakes == pytest.approx(2.1)
    assert found.too_short


def test_runs_that_are_not_there_are_left_out():
    whole = gain_of({"a": [0.4, 0.5], "b": [0.6, 0.65]}, "a", 1, longer=0.9, higher_is_better=True)
    gaps = {"a": [0.4, NAN, 0.5], "b": [0.6, 0.1, 0.65], "c": [0.3, 0.3, NAN]}
    found = gain_of(gaps, "a", 2, longer=0.9, higher_is_better=True)
    assert astuple(found) == pytest.approx(astuple(whole), nan_ok=True)


def test_what_cannot_be_told_is_nan_and_no_accusation():
    scores = {"a": [0.4, NAN], "b": [NAN, 0.5]}
    for place, longer in ((1, 0.9), (0, NAN)):
        found = gain_of(scores, "a", place, longer, higher_is_better=True)
        assert math.isnan(found.gain) and not found.too_short
    alone = gain_of(scores, "a", 0, 0.9, higher_is_better=True)
    assert alone.gain == pytest.approx(0.5) and math.isnan(alone.by_chance) and not alone.too_short


@pytest.mark.parametrize(
    ("gain", "by_chance", "mistakes", "learned", "short"),
    [
        (0.20, 0.05, 0.50, 0.99, True),  # far beyond chance
        (0.04, 0.01, 0.50, 0.50, False),  # surely a gain, but of less than a tenth of the mistakes
        (0.10, 0.20, 0.50, 0.99, False),  # may be chance, and all was learned
        (0.10, 0.20, 0.50, 0.60, True),  # may be chance, but the training loss agrees
        (-0.10, 0.05, 0.50, 0.60, False),  # longer is worse: training stops early on purpose
        (0.0, 0.0, 0.0, 0.5, False),  # nothing to gain
        (0.10, NAN, 0.50, NAN, False),
    ],
)
def test_when_training_is_called_too_short(gain, by_chance, mistakes, learned, short):
    assert Gain(gain, by_chance, mistakes, learned).too_short is short


def test_the_share_learned():
    assert learned_share([2.0, 1.0, 0.5], [2.0, 0.5, 0.2]) == pytest.approx(1.5 / 1.8)
    assert learned_share([2.0], [2.0, 1.0]) == 0.0  # one epoch has no fall
    assert learned_share([2.0, 0.5], [2.0, 0.6]) == 1.0  # the longer one learned no more
    assert learned_share([0.5, 0.7], [0.5, 0.6]) == 1.0  # a loss that rises, as with a weighting that begins late
    assert math.isnan(learned_share([], [1.0])) and math.isnan(learned_share([1.0, NAN], [1.0, 0.5]))


def test_a_training_that_was_long_enough_is_rarely_called_too_short():
    """With noise alone, and mistakes so few that any gain matters, the chance is ALPHA for two longer runs together."""
    rng = np.random.default_rng(0)
    studies, wrong = 2_000, 0
    for _ in range(studies):
        seed_effect, method_effect = rng.normal(0, 0.01, 8), rng.normal(0, 0.02, 4)
        table = 0.99 + method_effect[:, None] + seed_effect + rng.normal(0, 0.01, (4, 8))
        scores = {str(i): row.tolist() for i, row in enumerate(table)}
        longer = [0.99 + method_effect[i] + seed_effect[0] + rng.normal(0, 0.01) for i in range(2)]
        found = [gain_of(scores, str(i), 0, longer[i], higher_is_better=True, tests=2) for i in range(2)]
        wrong += any(gain.too_short for gain in found)
    assert ALPHA / 2 < wrong / studies <= ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / studies)
