import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.analysis import not_worse_than_best, t_test

NAN = math.nan


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 8), (25, 25)])
def test_p_against_scipy(n, m):
    rng = np.random.default_rng(n)
    a, b = rng.normal(0, 1, n), rng.normal(0.5, 3, m)
    assert t_test(a, b) == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue, rel=1e-10)
    if n == m:
        assert t_test(a, b, paired=True) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-10)


def test_by_hand():
    # means 1 and 3, variances 1: t = 2 / sqrt(2/3), four degrees of freedom
    assert t_test([0, 1, 2], [2, 3, 4]) == pytest.approx(2 * stats.t.sf(2 / math.sqrt(2 / 3), 4))


def test_few_and_constant_scores():
    assert math.isnan(t_test([0.7], [0.6, 0.8]))
    assert math.isnan(t_test([0.7], [0.6], paired=True))
    assert t_test([0.7, 0.7], [0.7, 0.7]) == 1.0
    assert t_test([0.7, 0.7], [0.6, 0.6]) == 0.0
    assert t_test([0.7, 0.8], [0.6, 0.7], paired=True) == pytest.approx(0, abs=1e-12)  # the difference is constant
    assert 0 < t_test([0.7, 0.7], [0.6, 0.5]) < 1


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
@settings(max_examples=40)
def test_mask_against_scipy(seed, higher, paired):
    scores = np.random.default_rng(seed).normal(np.arange(5)[:, None] * 0.4, 1, (5, 6))
    mask = not_worse_than_best(scores, higher_is_better=higher, paired=paired)
    means = scores.mean(axis=1)
    best = means.argmax() if higher else means.argmin()
    for i in range(5):
        test = stats.ttest_rel if paired else lambda a, b: stats.ttest_ind(a, b, equal_var=False)
        assert mask[i] == (i == best or test(scores[i], scores[best]).pvalue > 0.05)


def test_missing_runs():
    scores = [[0.70, 0.71, NAN, 0.72], [0.80, 0.81, 0.79, 0.82], [0.50, NAN, NAN, NAN], [NAN] * 4]
    assert not_worse_than_best(scores).tolist() == [False, True, True, False]
    # paired with the best over the runs that both have
    assert not_worse_than_best(scores, paired=True).tolist() == [False, True, True, False]
    assert not_worse_than_best([[NAN, NAN], [0.1, 0.2]], higher_is_better=False).tolist() == [False, True]
    assert not_worse_than_best([[0.5]]).tolist() == [True]


def test_pairs_tell_apart_what_seeds_hide():
    seeds = np.linspace(0, 1, 8)
    scores = np.stack([seeds, seeds + 0.01 + 0.001 * np.arange(8)])
    assert not_worse_than_best(scores).tolist() == [True, True]
    assert not_worse_than_best(scores, paired=True).tolist() == [False, True]


def test_arrays_are_answered_in_their_kind():
    assert isinstance(not_worse_than_best(torch.rand(3, 4)), torch.Tensor)
    assert isinstance(not_worse_than_best(np.random.default_rng(0).random((3, 4))), np.ndarray)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: not_worse_than_best([0.1, 0.2]), r"shape \(methods, runs\)"),
        (lambda: not_worse_than_best([[0.1, math.inf]]), "finite"),
        (lambda: t_test([0.1, NAN], [0.2, 0.3]), "a must be a row of finite numbers"),
        (lambda: t_test([0.1, 0.2], [0.2], paired=True), "equally many, not 2 and 1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
