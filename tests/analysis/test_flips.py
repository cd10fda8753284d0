"""Tests of many rows at once are the tests of each."""

import math

import numpy as np
import pytest

from equipoise.analysis import sign_flip_test
from equipoise.analysis.statistics._flips import AT_ONCE, sign_flip_tests


def test_each_row_has_the_p_value_it_has_alone():
    rng = np.random.default_rng(0)
    # rounded to tenths there are ties, which are where two ways to add can differ
    rows = [
        rng.normal(0.3, 1, n).round(digits) for n in (1, 2, 5, 9, 14, 15, 20) for digits in (1, 8) for _ in range(3)
    ]
    rows += [np.zeros(5), np.zeros(16), np.full(6, 1e-300), np.full(6, 1e300)]
    assert sign_flip_tests(rows, seed=3) == [sign_flip_test(row, seed=3) for row in rows]


def test_more_rows_than_fit_at_once_keep_their_places():
    rows = [np.arange(1.0, 6.0) * (1 if i % 3 else -1) + (i % 7) for i in range(2 * AT_ONCE + 5)]
    assert sign_flip_tests(rows) == [sign_flip_test(row) for row in rows]


def test_a_row_without_values_is_no_comparison():
    p = sign_flip_tests([np.empty(0), np.ones(6)])
    assert math.isnan(p[0]) and p[1] == 2 / 64
    assert sign_flip_tests([]) == []


@pytest.mark.parametrize("n", [6, 16])
def test_the_seed_decides_random_patterns_alone(n):
    row = np.random.default_rng(1).normal(0.3, 1, n)
    assert (sign_flip_tests([row], seed=1) == sign_flip_tests([row], seed=2)) == (n == 6)
