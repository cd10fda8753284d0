"""How much of a search's choice is chance: by hand, and over many made-up searches."""

import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.study import Study
from equipoise.study.tune.certainty import certainty, words
from equipoise.study.tune.outcome import MethodOutcome, Outcome, best_trial
from equipoise.study.tune.settings import Tuning
from equipoise.study.tune.trial import Score, Trial
from equipoise.train import Recipe

RECIPE = Recipe.make({"model": "cnn_small", "epochs": 3}, {"name": "blobs", "test": False})


def outcome_of(methods: dict[str, list[tuple[float, ...]]], metric: str = "accuracy") -> Outcome:
    """Scores by method, trial and seed."""
    seeds = len(next(iter(methods.values()))[0])
    study = Study("s", "?", next(iter(methods)), metric, (0,), dict.fromkeys(methods, RECIPE))
    study = replace(study, tuning=Tuning(trials=9, seeds=tuple(range(seeds))))
    found = []
    for name, scores in methods.items():
        trials = [Trial(i, {}, RECIPE, Score(float(np.mean(by_seed)), by_seed)) for i, by_seed in enumerate(scores)]
        found.append(MethodOutcome(name, {}, trials, best_trial(trials, metric)))
    return Outcome(study, found)


def test_by_hand():
    """Two methods of two trials and two seeds: without trial and seed effects ±0.01 and ±0.02 are left, twice each.

    σ² = (4 · 0.01² + 4 · 0.02²) / 2 = 0.001 with two degrees of freedom, t = 4.303, √(2/2) = 1.
    """
    outcome = outcome_of({"a": [(0.50, 0.60), (0.72, 0.78)], "b": [(0.50, 0.60), (0.54, 0.56)]})
    found = certainty(outcome)
    assert found.reach == pytest.approx(4.3027 * math.sqrt(0.001), rel=1e-4)
    assert found.changed == ("a",) and found.surely == ("a",)  # 0.75 - 0.55 = 0.2 > 0.136; b keeps its first trial
    text = words(outcome)
    assert (
        "up to 13.6 points (means of 2 seeds" in text
        and "1 method chose" in text
        and "surely better for it: a." in text
    )
    assert "would tell" not in text


def test_a_recipe_as_written_that_did_not_finish_is_not_compared_with():
    outcome = outcome_of({"a": [(0.50, 0.60), (0.72, 0.78)], "b": [(0.50, 0.60), (0.54, 0.56)]})
    method = outcome.methods[0]
    ended = replace(method, trials=[replace(method.trials[0], pruned=True), *method.trials[1:]])
    found = certainty(replace(outcome, methods=[ended, outcome.methods[1]]))
    assert found.changed == ("a",) and not found.surely
    assert "better for it: none." in words(replace(outcome, methods=[ended, outcome.methods[1]]))


def test_less_is_better_where_it_is():
    outcome = outcome_of({"a": [(1.00, 1.10), (0.52, 0.58)], "b": [(1.00, 1.10), (1.02, 1.12)]}, "nll")
    assert certainty(outcome).surely == ("a",) and "points" not in words(outcome)


def test_what_cannot_be_said_is_not_said():
    assert "one seed" in words(outcome_of({"a": [(0.5,), (0.6,)]}))
    assert "too few trials" in words(outcome_of({"a": [(0.5, 0.6)]}))
    same = outcome_of({"a": [(0.6, 0.7), (0.5, 0.61)]})
    assert words(same).endswith("95 %).") and not certainty(same).changed


@pytest.mark.parametrize(("trials", "seeds"), [(2, 2), (4, 3), (9, 2)])
def test_a_choice_among_equals_is_rarely_called_sure(trials, seeds):
    """All trials are equally good; seeds are good or bad for all of them alike."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(300):
        methods = {}
        for name in "abc":
            scores = 0.7 + 0.05 * rng.normal(size=seeds) + 0.01 * rng.normal(size=(trials, seeds))
            methods[name] = [tuple(row) for row in scores.tolist()]
        wrong += len(certainty(outcome_of(methods)).surely)
    assert wrong <= 37  # one-sided 2.5 % of 900 are 22.5, with a standard deviation of 4.7
