"""Looks: where they lie, what they may spend, and that a p-value divided by its share is one again."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.analysis import smallest_n_for_claim
from equipoise.analysis.statistics._flips import sign_flip_tests
from equipoise.analysis.statistics.looks import LEAST_GROWTH, Looks, plan_looks


@settings(max_examples=50)
@given(st.integers(0, 300), st.integers(1, 40), st.sampled_from([0.01, 0.05, 0.1]))
def test_a_plan_spends_alpha_and_every_look_can_claim(extra, comparisons, alpha):
    most = smallest_n_for_claim(alpha, comparisons) + extra
    looks = plan_looks(most, comparisons, alpha)
    assert looks.seeds[-1] == most
    assert sum(looks.shares) == pytest.approx(1)
    for n, share in zip(looks.seeds, looks.shares, strict=True):
        assert 2 / 2**n <= alpha * share / comparisons
    for before, after in zip(looks.seeds, looks.seeds[1:], strict=False):
        assert after >= LEAST_GROWTH * (before - 1)  # seeds are whole, rounded up


def test_plans_by_hand():
    # of one comparison: 8 pairs have p = 2/256 = 0.0078, below 0.05 / 5; then by (24 / 8) ** 0.25 = 1.316
    assert plan_looks(24, 1) == Looks((8, 11, 14, 19, 24), (0.2,) * 5)
    assert plan_looks(6, 1) == Looks((6,), (1.0,))
    assert plan_looks(9, 1) == Looks((7, 9), (0.5, 0.5))


def test_too_few_seeds_for_any_claim():
    with pytest.raises(ValueError, match="8 seeds cannot decide anything between 8 methods: at least 9"):
        plan_looks(8, 7)


@pytest.mark.parametrize(
    ("seeds", "shares", "message"),
    [
        ((), (), "there are 0 and 0"),
        ((6, 8), (1.0,), "there are 2 and 1"),
        ((8, 8), (0.5, 0.5), "more seeds than the one before"),
        ((8, 6), (0.5, 0.5), "more seeds than the one before"),
        ((0, 6), (0.5, 0.5), "more seeds than the one before"),
        ((6, 8), (0.6, 0.6), "sum to 1 at most"),
        ((6, 8), (0.0, 1.0), "above 0"),
    ],
)
def test_looks_that_are_none(seeds, shares, message):
    with pytest.raises(ValueError, match=message):
        Looks(seeds, shares)


def test_before_the_first_look_there_is_none():
    assert [Looks((6, 9), (0.5, 0.5)).at(n) for n in (0, 5, 6, 8, 9, 99)] == [0, 0, 1, 1, 2, 2]


def test_a_p_value_at_the_worst_look_is_still_one():
    """Somebody who sees all looks and ends at the one that suits best claims no more often than alpha."""
    looks, studies = Looks((6, 8, 10, 12), (0.25,) * 4), 4000
    d = np.random.default_rng(0).normal(size=(studies, 12))
    p = np.array([sign_flip_tests(list(d[:, :n])) for n in looks.seeds]) / np.array(looks.shares)[:, None]
    best = p.min(axis=0)
    for level in (0.01, 0.05, 0.2):
        assert (best <= level).mean() <= level + 2 * math.sqrt(level * (1 - level) / studies)
    assert (np.array([sign_flip_tests(list(d[:, :n])) for n in looks.seeds]).min(axis=0) <= 0.05).mean() > 0.08
