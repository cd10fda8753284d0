import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equipoise.analysis import holm, mean_interval, power_note, seeds_needed, sign_flip_test, smallest_n_for_claim
from equipoise.analysis.statistics import tests as statistics

HUNDREDTHS = st.lists(st.integers(-20, 20), min_size=1, max_size=8)


def slow_sign_flip(differences):
    """Every sign pattern, in fractions, so that ties are ties."""
    d = [Fraction(x) for x in differences]
    patterns = list(itertools.product((-1, 1), repeat=len(d)))
    extreme = sum(abs(sum(s * x for s, x in zip(p, d, strict=True))) >= abs(sum(d)) for p in patterns)
    return extreme / len(patterns)


def slow_holm(p_values):
    """The definition: reject one after the other in order of p; the adjusted p is the least alpha that rejects."""
    m, adjusted, floor = len(p_values), [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        floor = max(floor, min(1.0, (m - rank) * p_values[i]))
        adjusted[i] = floor
    return adjusted


@given(HUNDREDTHS)
def test_sign_flip_is_exact_with_many_ties(hundredths):
    # hundredths have many ties, which rounding breaks unless sums are compared with a tolerance: 0.1 + 0.2 is not 0.3
    assert sign_flip_test([h / 100 for h in hundredths]) == slow_sign_flip(hundredths)


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_sign_flip_without_ties(n):
    d = np.random.default_rng(n).normal(0.5, 1, n)
    assert sign_flip_test(d) == slow_sign_flip(d)


def test_sign_flip_by_hand():
    # of the 8 sums of (1, 2, 3) with signs, only +6 and -6 are as large as 6; for (1, -2, 3): ±6, ±4 and two ±2
    assert sign_flip_test([1, 2, 3]) == 2 / 8
    assert sign_flip_test([1, -2, 3]) == 6 / 8
    assert sign_flip_test([0.3] * 14) == 2 / 2**14


@given(HUNDREDTHS, st.randoms(use_true_random=False), st.floats(1e-6, 1e6))
def test_sign_flip_ignores_order_common_sign_and_scale(hundredths, random, scale):
    d = [h / 100 for h in hundredths]
    p = sign_flip_test(d)
    shuffled = random.sample(d, len(d))
    assert sign_flip_test(shuffled) == p
    assert sign_flip_test([-x for x in d]) == p
    assert sign_flip_test([scale * x for x in d]) == p
    assert 2 / 2 ** len(d) <= p <= 1


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e308])
def test_sign_flip_of_any_size(value):
    assert sign_flip_test([value] * 6) == 2 / 64


def test_sign_flip_of_nothing():
    assert sign_flip_test([]) == 1.0
    assert sign_flip_test([0.0] * 20) == 1.0
    assert sign_flip_test([0.4]) == 1.0
    # zeros cannot be flipped: seven pairs of which five differ reach no more than five pairs
    assert sign_flip_test([0.1, 0.2, 0.3, 0.4, 0.5, 0.0, 0.0]) == 2 / 32


def test_random_flips_agree_with_all_flips():
    d = np.random.default_rng(0).normal(0.5, 1, 12)
    exact, random = sign_flip_test(d), sign_flip_test(d, max_exact=11)
    assert random != exact
    assert random == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / statistics.RANDOM_FLIPS))


def test_random_flips_have_a_seed_and_never_give_0():
    d = np.random.default_rng(1).normal(0.2, 1, 16)
    assert sign_flip_test(d) == sign_flip_test(d, seed=0) == sign_flip_test(-d[::-1])
    assert sign_flip_test(d, seed=1) != sign_flip_test(d)
    assert sign_flip_test(np.ones(60)) == 1 / (statistics.RANDOM_FLIPS + 1)


def test_fourteen_pairs_are_exact_and_fifteen_are_not():
    d = np.random.default_rng(2).normal(0.3, 1, 15)
    assert sign_flip_test(d[:14], seed=0) == sign_flip_test(d[:14], seed=1)
    assert sign_flip_test(d, seed=0) != sign_flip_test(d, seed=1)


@pytest.mark.parametrize(("n", "confidence"), [(2, 0.95), (5, 0.9), (30, 0.99)])
def test_mean_interval_against_scipy(n, confidence):
    x = np.random.default_rng(n).normal(3, 2, n)
    expected = stats.t.interval(confidence, n - 1, loc=x.mean(), scale=stats.sem(x))
    assert mean_interval(x, confidence) == pytest.approx(expected)


def test_mean_interval_of_few():
    assert np.isnan(mean_interval([0.7])).all()
    assert np.isnan(mean_interval([])).all()
    assert mean_interval([0.5, 0.5, 0.5]) == (0.5, 0.5)
    assert mean_interval([0.0, 2.0]) == pytest.approx((1 - 12.7062, 1 + 12.7062), rel=1e-5)  # t(1) at 0.975, sem 1


@pytest.mark.parametrize("function", [sign_flip_test, mean_interval, seeds_needed])
@pytest.mark.parametrize("values", [[0.1, math.nan], [math.inf], [[0.1]]])
def test_only_rows_of_finite_numbers(function, values):
    with pytest.raises(ValueError, match="row of finite numbers"):
        function(values)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm(p_values):
    adjusted = holm(p_values)
    np.testing.assert_allclose(adjusted, slow_holm(p_values), rtol=1e-12)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


def test_scores_may_be_tensors():
    p = torch.tensor([0.04, math.nan, 0.01])
    assert isinstance(holm(p), torch.Tensor)
    np.testing.assert_allclose(holm(p), holm(p.numpy()))
    d = [0.01, 0.03, 0.02, 0.01, 0.04, 0.02]
    for function in (sign_flip_test, mean_interval, seeds_needed):
        assert function(torch.tensor(d, dtype=torch.float64)) == function(d)


def test_holm_by_hand_and_with_gaps():
    assert holm([0.01, 0.02, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.04, 0.04, 0.02])
    np.testing.assert_allclose(holm([0.04, math.nan, 0.01]), [0.04, math.nan, 0.02])


def test_smallest_n_for_claim():
    assert [smallest_n_for_claim(0.05, m) for m in (1, 2, 3, 5, 6, 7, 12)] == [6, 7, 7, 8, 8, 9, 9]
    assert smallest_n_for_claim(0.0625, 2) == 6  # 2 * 2/64 is exactly 0.0625, which is enough


@given(st.floats(0.001, 0.5), st.integers(1, 30))
def test_smallest_n_for_claim_is_what_the_tests_can_do(alpha, comparisons):
    n = smallest_n_for_claim(alpha, comparisons)
    if n <= 12:
        # the best case: one method wins every pair, the others differ nowhere
        p = [sign_flip_test(np.ones(n))] + [1.0] * (comparisons - 1)
        assert holm(p)[0] <= alpha
        assert holm([sign_flip_test(np.ones(n - 1)), *p[1:]])[0] > alpha


def with_effect(effect, n=50):
    """Differences whose mean is `effect` times their standard deviation."""
    x = np.random.default_rng(0).normal(size=n)
    return effect + (x - x.mean()) / x.std(ddof=1)


@pytest.mark.parametrize(("effect", "comparisons"), [(0.1, 1), (0.3, 1), (0.5, 4), (0.7, 1), (1.0, 5)])
def test_seeds_needed_against_scipy(effect, comparisons):
    n = seeds_needed(with_effect(effect), 0.05, 0.8, comparisons)

    def power(n):
        return stats.nct.sf(stats.t.isf(0.025 / comparisons, n - 1), n - 1, effect * math.sqrt(n))

    assert power(n) >= 0.8 > power(n - 1)


def test_seeds_needed_by_the_textbook():
    assert seeds_needed(with_effect(0.5)) == 34  # the usual example: d = 0.5, alpha 0.05 two-sided, power 0.8
    assert seeds_needed(-with_effect(0.5)) == 34
    assert seeds_needed(with_effect(0.5), power=0.9) == 44


def test_seeds_needed_at_the_limits():
    # eight would do for a t-test; the sign-flip test then wants one sign in all of them: 0.945 ** 8 is 0.64
    assert seeds_needed(with_effect(1.6), comparisons=5) == 9
    assert seeds_needed(with_effect(2.0), comparisons=5) == 8  # 0.977 ** 8 is 0.83
    assert seeds_needed([0.01] * 4, comparisons=5) == smallest_n_for_claim(0.05, 5)  # no spread at all
    assert seeds_needed(with_effect(1e5)) == 6
    assert seeds_needed([0.0, 0.0, 0.0]) is None
    assert seeds_needed([0.1, -0.1]) is None
    assert seeds_needed([0.1]) is None
    assert seeds_needed([]) is None
    assert seeds_needed(with_effect(0.089)) == 993
    assert seeds_needed(with_effect(0.088)) is None  # 1016


@pytest.mark.parametrize(("effect", "comparisons"), [(0.8, 1), (1.0, 1), (1.3, 5), (1.6, 1), (1.6, 5), (2.0, 5)])
def test_seeds_needed_keeps_its_promise(effect, comparisons):
    """The sign-flip test, for which the t-test only stands in, does find the effect about 4 times in 5."""
    n = seeds_needed(with_effect(effect), comparisons=comparisons)
    rng = np.random.default_rng(0)
    found = np.mean([sign_flip_test(rng.normal(effect, 1, n), max_exact=15) <= 0.05 / comparisons for _ in range(400)])
    assert found > 0.8 - 0.06  # three standard errors of 400 trials


def test_power_note():
    assert power_note(6, 5) == (
        "6 pairs cannot support any claim: the least p of an exact sign-flip test is then 2/2^6 = 0.0312, and after "
        "Holm over 5 comparisons the first claim needs p <= 0.05/5 = 0.01, so at least 8 pairs."
    )
    assert power_note(8, 5).startswith("8 pairs can support a claim")
    assert power_note(6, 1).startswith("6 pairs can support a claim: a claim needs p <= 0.05,")
    assert power_note(1, 1).startswith("1 pair cannot")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: smallest_n_for_claim(0.0, 1), "alpha must lie between 0 and 1"),
        (lambda: smallest_n_for_claim(1.0, 1), "alpha must lie between 0 and 1"),
        (lambda: smallest_n_for_claim(0.05, 0), "comparisons must be at least 1"),
        (lambda: power_note(0, 1), "n_pairs must be at least 1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
