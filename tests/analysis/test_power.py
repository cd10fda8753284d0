"""The chance of a claim, against counted claims of simulated studies."""

import math

import numpy as np
import pytest
from scipy import stats

from equipoise.analysis import compare, sign_flip_test, smallest_n_for_claim
from equipoise.analysis.statistics._flips import sign_flip_tests
from equipoise.analysis.statistics.power import FEW_PATTERNS, claim_power, claimed, detectable_effect, pairs_needed


@pytest.mark.parametrize("comparisons", [1, 3, 7, 20])
@pytest.mark.parametrize("more", [0, 1, 2, 4])
def test_power_against_counted_tests(comparisons, more):
    n = smallest_n_for_claim(0.05, comparisons) + more
    z = np.random.default_rng(n).normal(size=(1500, n))
    for effect in (0.6, 1.2, 2.0):
        found = np.array(sign_flip_tests(list(z + effect))) <= 0.05 / comparisons
        counted = (found & ((z + effect).mean(axis=1) > 0)).mean()
        assert claim_power(n, effect, 0.05, comparisons) == pytest.approx(counted, abs=0.04)


@pytest.mark.parametrize(("methods", "n"), [(2, 8), (4, 9), (6, 12)])
def test_the_promise_of_a_whole_study(methods, n):
    """One method is better, the others equal to the baseline: how often `compare` says so."""
    rng, effect, studies, found = np.random.default_rng(0), 1.3, 300, 0
    for _ in range(studies):
        scores = {f"m{i}": x for i, x in enumerate(rng.normal(size=(methods, n)))}
        scores["m1"] = scores["m1"] + effect * math.sqrt(2)  # the spread of a difference of two
        standings = {m.name: m.standing for m in compare(scores, "m0").methods}
        found += standings["m1"] == "better"
    promised = claim_power(n, effect, 0.05, methods - 1)
    assert found / studies == pytest.approx(promised, abs=0.05 + 2 * math.sqrt(0.25 / studies))


def test_the_fewest_pairs_claim_where_all_agree():
    assert claim_power(6, 1.0) == pytest.approx(stats.norm.cdf(1.0) ** 6, abs=0.015)
    assert claim_power(9, 1.5, comparisons=7) == pytest.approx(stats.norm.cdf(1.5) ** 9, abs=0.015)
    assert claim_power(5, 100.0) == 0


def test_a_region_of_few_patterns_is_counted_pattern_by_pattern():
    """All seven-pair samples of one simulation: the sets of sizes that decide are those of the definition."""
    d = np.random.default_rng(2).normal(0.5, 1, (200, 7))
    for patterns in range(1, FEW_PATTERNS):
        level = patterns / 2**6
        expected = np.mean([sign_flip_test(row) <= level and row.mean() > 0 for row in d])
        assert claimed(d, patterns).mean() == expected


def test_power_grows_with_the_effect():
    for n in (6, 7, 9, 14, 30):
        chances = [claim_power(n, effect) for effect in np.linspace(0, 4, 21)]
        assert chances == sorted(chances) and chances[0] <= 0.05


@pytest.mark.parametrize(("n", "comparisons"), [(7, 1), (10, 3), (12, 7), (40, 20)])
def test_what_is_detectable_has_the_power_asked_for(n, comparisons):
    effect = detectable_effect(n, 0.8, 0.05, comparisons)
    assert claim_power(n, effect, 0.05, comparisons) >= 0.8
    assert claim_power(n, effect - 0.01, 0.05, comparisons) < 0.8
    assert detectable_effect(n, 0.9, 0.05, comparisons) > effect


def test_nothing_is_detectable_with_too_few():
    assert detectable_effect(5) == math.inf and detectable_effect(8, comparisons=7) == math.inf


@pytest.mark.parametrize("effect", [0.3, 0.7, 1.0, 3.0])
def test_pairs_needed_are_the_fewest(effect):
    n = pairs_needed(effect, comparisons=3)
    assert claim_power(n, effect, comparisons=3) >= 0.8
    assert n == smallest_n_for_claim(0.05, 3) or claim_power(n - 1, effect, comparisons=3) < 0.8
    assert pairs_needed(0.0) is None
