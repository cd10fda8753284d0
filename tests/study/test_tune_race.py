"""The race between trials, with simulated scores: half the runs, nearly the choice of an exhaustive search."""

import numpy as np
import pytest
from scipy import stats

from equipoise.study.tune.race import hopeless_trials

SEEDS = 6


def raced(scores, margin=0.005):
    """Scores (trials, seeds) given out seed by seed: the scores that each trial has in the end."""
    going = [True] * len(scores)
    had = [[] for _ in scores]
    for seed in range(scores.shape[1]):
        for trial in np.flatnonzero(going):
            had[trial].append(scores[trial, seed])
        ends = hopeless_trials(had, seed + 1, higher_is_better=True, margin=margin)
        going = [on and not end for on, end in zip(going, ends, strict=True)]
    return had


def drawn(rng, noise, trials=12):
    """A grid around an optimum: trials lose up to 15 points, seeds move all of them, and each has noise of its own."""
    true = 0.9 - 0.12 * np.linspace(-1, 1, trials) ** 2 - 0.03 * rng.random(trials)
    own = noise * np.where(true < 0.82, 3, 1)  # what hardly trains is noisier
    return true[:, None] + 0.02 * rng.normal(size=SEEDS) + own[:, None] * rng.normal(size=(trials, SEEDS))


@pytest.mark.parametrize("noise", [0.005, 0.01])
def test_the_choice_of_an_exhaustive_search_at_half_the_runs(noise):
    rng = np.random.default_rng(0)
    lost, runs = [], []
    for _ in range(100):
        scores = drawn(rng, noise)
        had = raced(scores)
        chosen = max((t for t, row in enumerate(had) if len(row) == SEEDS), key=lambda t: scores[t].mean())
        lost.append(scores.mean(axis=1).max() - scores[chosen].mean())
        runs.append(sum(map(len, had)) / scores.size)
    assert np.mean(runs) <= 0.5
    assert np.quantile(lost, 0.95) <= 0.005


def test_a_trial_that_is_better_is_not_ended():
    """By two points with noise of one: over 100 races it is there in the end in all but a few."""
    rng, there = np.random.default_rng(1), 0
    for _ in range(100):
        scores = 0.01 * rng.normal(size=(8, SEEDS))
        scores[3] += 0.02
        there += len(raced(scores)[3]) == SEEDS
    assert there >= 95


@pytest.mark.parametrize("margin", [0.0, 0.005, 0.09])
def test_the_threshold_by_hand(margin):
    """Two trials: the noise of an additive model is that of their differences, over √2."""
    a, b = [0.80, 0.82, 0.81], [0.79, 0.78, 0.83]
    differences = np.subtract(a, b)
    reach = stats.t.ppf(0.95, 2) * differences.std(ddof=1) / np.sqrt(3)
    expected = bool(differences.mean() > reach - margin)
    assert hopeless_trials([a, b], 3, higher_is_better=True, margin=margin) == [False, expected]
    lower = [[-x for x in a], [-x for x in b]]
    assert hopeless_trials(lower, 3, higher_is_better=False, margin=margin) == [False, expected]
    assert expected is (margin == 0.09)


@pytest.mark.parametrize("scores", [[], [[0.1]], [[0.9], [0.1]], [[0.9, 0.8]], [[], [0.5]]])
def test_nothing_ends_before_the_noise_is_known(scores):
    assert hopeless_trials(scores, 1, higher_is_better=True) == [False] * len(scores)


def test_a_later_wave_is_compared_after_its_first_seed():
    before = [[0.90, 0.92, 0.91], [0.88, 0.90, 0.89], [0.89, 0.92, 0.90]]
    found = hopeless_trials([*before, [0.60], [0.90]], 1, higher_is_better=True)
    assert found == [False, False, False, True, False]
