"""The race between trials, with simulated scores: half the runs, nearly the choice of an exhaustive search."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from equipoise.study.tune.race import Racer, hoped_end, hopeless, who_goes_on

from ..loading import loaded

SEEDS = 6
race = loaded(Path(__file__).parents[2] / "benchmarks" / "race.py")


def racer(*scores, hoped=None, first=None):
    """A racer whose score after s seeds is the mean of its first s scores."""
    means = tuple(float(np.mean(scores[: n + 1])) for n in range(len(scores)))
    return Racer(scores, means, hoped, scores[0] if first is None and scores else first or -math.inf)


def raced(scores):
    """Scores (trials, seeds) given out as a race does: how many each trial gets."""
    return race.race(scores[:, :, None])  # curves of one epoch


@pytest.mark.parametrize("noise", [0.005, 0.01, 0.02])
def test_the_choice_of_an_exhaustive_search_at_half_the_runs(noise):
    rng = np.random.default_rng(0)
    lost, runs = [], []
    for _ in range(40):
        scores = race.drawn(rng, noise)
        had = raced(scores)
        chosen = max((t for t, n in enumerate(had) if n == SEEDS), key=lambda t: scores[t].mean())
        lost.append(scores.mean(axis=1).max() - scores[chosen].mean())
        runs.append(sum(had) / scores.size)
    assert np.mean(runs) <= 0.5
    assert np.quantile(lost, 0.95) <= 0.005


def test_a_trial_that_is_better_is_not_ended():
    """By two points with noise of one: over 60 races it is there in the end in all but a few."""
    rng, there = np.random.default_rng(1), 0
    for _ in range(60):
        scores = 0.01 * rng.normal(size=(8, SEEDS))
        scores[3] += 0.02
        there += raced(scores)[3] == SEEDS
    assert there >= 57


@pytest.mark.parametrize(("margin", "expected"), [(0.0, False), (0.005, False), (0.09, True)])
def test_the_threshold_by_hand(margin, expected):
    """Two trials: the noise of an additive model is that of their differences, over √2; five looks share the 5 %."""
    a, b = [0.80, 0.82, 0.81], [0.79, 0.78, 0.83]
    differences = np.subtract(a, b)
    reach = stats.t.ppf(1 - 0.05 / 5, 2) * differences.std(ddof=1) * np.sqrt(1 / 3 - 1 / 6)
    assert bool(differences.mean() > reach - margin) is expected
    assert hopeless([racer(*a), racer(*b)], SEEDS, margin) == [False, expected]


@pytest.mark.parametrize(
    "racers", [[], [racer(0.1)], [racer(0.9), racer(0.1)], [racer(0.9, 0.8)], [Racer(), racer(0.5)]]
)
def test_nothing_ends_before_the_noise_is_known(racers):
    assert hopeless(racers, SEEDS) == [False] * len(racers)


def test_a_later_wave_is_compared_after_its_first_seed():
    before = [racer(0.90, 0.92, 0.91), racer(0.88, 0.90, 0.89), racer(0.89, 0.92, 0.90)]
    assert hopeless([*before, racer(0.60), racer(0.90)], 3) == [False, False, False, True, False]


def test_a_run_half_way_is_judged_by_what_it_may_come_to():
    before = [racer(0.90, 0.92, 0.91), racer(0.88, 0.91, 0.89)]
    assert hopeless([*before, racer(hoped=0.60), racer(hoped=0.90), racer(hoped=math.inf)], 3)[2:] == [
        True,
        False,
        False,
    ]


def test_a_hope_is_the_largest_gain_or_the_same_way_later():
    fast, steady = [0.2, 0.6, 0.8, 0.9, 0.9, 0.9], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert hoped_end([0.1, 0.3, 0.2], []) == math.inf
    assert hoped_end([0.1, 0.3, 0.2], [steady]) == pytest.approx(0.6)  # as steady was after 3 of 6, so it ends
    assert hoped_end([0.1, 0.1, 0.1, 0.1], [fast]) == pytest.approx(0.8)  # as fast after 1, two epochs before 3
    assert hoped_end([0.7, 0.7, 0.7], [fast, steady]) == pytest.approx(1.0)  # the gain of steady, 0.3


def test_the_better_half_goes_ahead_and_then_those_that_are_behind():
    wave = [racer(0.1), racer(0.2), racer(0.3), racer(0.4), racer(0.5), racer(0.6), racer(0.7), racer(0.8)]
    assert who_goes_on(wave, [], SEEDS) == [False] * 4 + [True] * 4
    known = [racer(0.1), racer(0.2), racer(0.7, 0.8), racer(0.8, 0.7)]
    assert who_goes_on(known, [], SEEDS) == [True, True, False, False]
