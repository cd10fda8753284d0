"""Wilcoxon's signed-rank test against scipy, and against counting all signs where sizes are tied."""

import itertools

import numpy as np
import pytest
from scipy import stats

from equipoise.analysis import signed_rank_test


@pytest.mark.parametrize("n", [1, 2, 5, 6, 9, 14, 30, 45])
def test_is_scipys_without_ties(n):
    x = np.random.default_rng(n).normal(0.3, 1, n)
    assert signed_rank_test(x) == pytest.approx(stats.wilcoxon(x, method="exact").pvalue, rel=1e-12)


@pytest.mark.parametrize(
    "x",
    [[1, 1, 2, -2, 3], [0.5, -0.5, 0.5, 0.5], [0, 1, 2, -1, 0, 3, 3, 3], [0.1 + 0.2, 0.3, -0.3, 0.6, 0.3]],
)
def test_with_ties_and_zeros_it_counts_all_signs(x):
    """The last one has sizes that differ by rounding alone."""
    sizes = np.round(np.abs(np.array(x)[np.abs(x) > 0]), 9)
    ranks, positive = stats.rankdata(sizes), np.array([d > 0 for d in x if d != 0])
    sums = np.array([(np.array(signs) * ranks).sum() for signs in itertools.product([0, 1], repeat=len(ranks))])
    observed = (positive * ranks).sum()
    expected = 2 * min((sums <= observed + 1e-9).mean(), (sums >= observed - 1e-9).mean())
    assert signed_rank_test(x) == pytest.approx(min(1.0, expected), rel=1e-12)


def test_nothing_to_tell():
    assert signed_rank_test([]) == signed_rank_test([0.0, 0.0]) == 1.0
    assert signed_rank_test([1.0] * 5) == 2 / 2**5  # five data sets cannot show anything at 5 %
    with pytest.raises(ValueError, match="finite"):
        signed_rank_test([1.0, np.nan])
