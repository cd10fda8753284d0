import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.analysis import friedman_test, nemenyi_critical_difference


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(3, 6))
@settings(max_examples=40)
def test_against_scipy_with_ties(seed, datasets, methods):
    scores = np.random.default_rng(seed).integers(0, 4, (datasets, methods)) / 4
    if (scores == scores[:, :1]).all():
        return
    theirs = stats.friedmanchisquare(*scores.T)
    found = friedman_test(scores)
    assert found.statistic == pytest.approx(theirs.statistic, rel=1e-10, abs=1e-12)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(found.ranks, stats.rankdata(-scores, axis=1).mean(axis=0))
    np.testing.assert_allclose(friedman_test(scores, higher_is_better=False).ranks, methods + 1 - found.ranks)


def test_the_example_of_demsar():
    """Table 6 of the paper: C4.5 with none, one or both of two parameters tuned, on 14 data sets."""
    scores = [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
    found = friedman_test(scores)
    np.testing.assert_allclose(found.ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)


def test_critical_differences_of_the_table():
    """Demšar, table 5a: q at 0.05 and 0.10; CD = q sqrt(k (k + 1) / (6 N))."""
    for k, at_5, at_10 in [(2, 1.960, 1.645), (3, 2.343, 2.052), (5, 2.728, 2.459), (10, 3.164, 2.920)]:
        scale = math.sqrt(k * (k + 1) / (6 * 14))
        assert nemenyi_critical_difference(k, 14) == pytest.approx(at_5 * scale, abs=1e-3)
        assert nemenyi_critical_difference(k, 14, alpha=0.1) == pytest.approx(at_10 * scale, abs=1e-3)


def test_all_scores_equal():
    found = friedman_test([[0.5, 0.5, 0.5]] * 3)
    assert (found.statistic, found.p, found.ranks.tolist()) == (0.0, 1.0, [2.0, 2.0, 2.0])


def test_arrays_are_answered_in_their_kind():
    scores = torch.rand(4, 3)
    assert isinstance(friedman_test(scores).ranks, torch.Tensor)
    assert isinstance(friedman_test(scores.numpy()).ranks, np.ndarray)
    assert type(friedman_test(scores).p) is float


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: friedman_test([[0.1, 0.2]]), "two data sets and two methods"),
        (lambda: friedman_test([[0.1], [0.2]]), "two data sets and two methods"),
        (lambda: friedman_test([[0.1, math.nan], [0.1, 0.2]]), "scores must be finite"),
        (lambda: nemenyi_critical_difference(1, 5), "methods must be a whole number, at least 2"),
        (lambda: nemenyi_critical_difference(3, 0), "datasets must be a whole number, at least 1"),
        (lambda: nemenyi_critical_difference(3, 5, alpha=0), "alpha must lie between 0 and 1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
