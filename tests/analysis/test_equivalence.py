"""Practically equal: sign flips in loops, scipy's permutation tests, numbers of statsmodels and baycomp."""

import json
import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from equipoise.analysis import Verdict, compare, holm
from equipoise.analysis.statistics.equivalence import equality_power, equivalence_test, pairs_for_equality
from equipoise.analysis.statistics.looks import Looks
from equipoise.analysis.statistics.new_images import ImageScores, NewImages

X = np.array([0.713, 0.705, 0.721, 0.698, 0.716, 0.709, 0.702, 0.718])
Y = np.array([0.711, 0.708, 0.716, 0.700, 0.713, 0.710, 0.697, 0.717])


def slow(d, within):
    """Both one-sided tests over all signs, rounded up to the steps of the two-sided test."""
    p = []
    for x in (within + d, within - d):
        as_large = sum(np.dot(signs, x) >= x.sum() - 1e-12 for signs in product((-1, 1), repeat=len(x)))
        p.append(math.ceil(as_large / 2) * 2 / 2 ** len(x))
    return max(p)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("within", [0.3, 1.0, 3.0])
def test_every_sign_pattern(n, within):
    d = np.random.default_rng(n).normal(0.2, 1, n)
    assert equivalence_test(d, within) == slow(d, within)
    assert equivalence_test(-d[::-1], within) == slow(d, within)


def test_scipy_agrees():
    d, within = X - Y, 0.005
    sides = [
        stats.permutation_test((x,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf)
        for x in (within + d, within - d)
    ]
    larger = max(side.pvalue for side in sides)
    assert larger <= equivalence_test(d, within) <= larger + 1 / 2 ** len(d)


def test_many_pairs_come_near_the_t_test():
    d = np.random.default_rng(0).normal(0.1, 1, 30)
    sides = [stats.ttest_1samp(x, 0, alternative="greater").pvalue for x in (0.5 + d, 0.5 - d)]
    assert equivalence_test(d, 0.5) == pytest.approx(max(sides), abs=0.005)
    assert equivalence_test(d, 0.5, seed=1) != equivalence_test(d, 0.5) == equivalence_test(d, 0.5, seed=0)


def test_hostile_differences():
    assert equivalence_test([], 1.0) == 1.0
    assert equivalence_test([1.0] * 8, 1.0) == 1.0  # at the margin
    assert equivalence_test([0.0] * 6, 1e-9) == 2 / 2**6
    with pytest.raises(ValueError, match="within must be"):
        equivalence_test([0.0], 0.0)


def test_t_tests_for_new_images_agree_with_statsmodels_and_baycomp():
    """statsmodels 0.15.0: ttost_paired(X, Y, -0.005, 0.005)[0] = 0.005221223685770854.

    baycomp 1.0.3: two_on_single(Y, X, rope=0.005) = 0.0027738 left, 0.9723753 within, 0.0248510 right, from a t with
    mean 0.00125, variance 2.5063775510204125e-06 and 7 degrees of freedom.
    """
    d = X - Y
    paired = NewImages(d.mean(), d.mean(), 1.0, error=stats.sem(d), freedom=7)
    assert paired.p_equal(0.005) == pytest.approx(0.005221223685770854)
    posterior = NewImages(0.00125, 0.00125, 1.0, error=math.sqrt(2.5063775510204125e-06), freedom=7)
    assert posterior.p_equal(0.005) == pytest.approx(0.024850982847808623)
    assert NewImages(0.1, 0.1, 0.0).p_equal(0.2) == 0 and NewImages(0.1, 0.1, 0.0).p_equal(0.1) == 1


def study(**shifts):
    rng = np.random.default_rng(3)
    common = rng.normal(0, 0.02, 9)
    noise = {name: rng.normal(0, 0.002, 9) for name in shifts}
    return {name: 0.7 + common + x - x.mean() + shifts[name] for name, x in noise.items()}


def by_name(verdict):
    return {m.name: m for m in verdict.methods}


def test_a_verdict_with_a_margin():
    scores = study(plain=0.0, good=0.05, slight=0.006, same=0.0, far=-0.05)
    scores["wild"] = scores["plain"] + 0.1 * np.array([1, -1, 1, -1, 1, -1, 1, -1, 0])
    verdict = compare(scores, "plain", equivalent_within=0.012)
    rows, others = by_name(verdict), [name for name in scores if name != "plain"]
    p = holm([slow(scores[name] - scores["plain"], 0.012) for name in others])
    assert [rows[name].p_equal for name in others] == pytest.approx(p)
    assert {name: rows[name].standing for name in others} == {
        "good": "better",
        "slight": "better",
        "same": "practically equal",
        "far": "worse",
        "wild": "not separable",
    }
    said = " ".join(verdict.sentences())
    assert "same is practically equal; far is worse; 5 compared" in said
    assert "same is practically equal to plain: +0.00 points" in said
    assert (
        "slight is better than plain by 0.60 points" in said and said.count("surely by less than the 1.20 points") == 2
    )
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))).sentences() == verdict.sentences()
    without = by_name(compare(scores, "plain"))
    assert without["same"].standing == "not separable" and math.isnan(without["same"].p_equal)
    assert [m.tier for m in verdict.methods] == [without[m.name].tier for m in verdict.methods]


def test_looks_count_for_equality_too():
    scores = study(plain=0.0, same=0.0)
    looks = Looks((9,), (0.25,))
    p = by_name(compare(scores, "plain", equivalent_within=0.005))["same"].p_equal
    assert by_name(compare(scores, "plain", equivalent_within=0.005, looks=looks))["same"].p_equal == 4 * p


def test_a_short_training_withholds_equality():
    verdict = compare(study(plain=0.0, same=0.0), "plain", equivalent_within=0.01).on_broken_premise("Too short.")
    assert by_name(verdict)["same"].standing == "withheld"


@pytest.mark.parametrize(("n", "holds_for"), [(40, "these images"), (4000, "new images")])
def test_equality_for_new_images_needs_many_images(n, holds_for):
    """Each method is right about a tenth of the images where the other is wrong, whatever the seed."""
    kind = np.arange(n) % 10
    base, other = (kind != 0).astype(float), (kind != 1).astype(float)
    rng = np.random.default_rng(4)
    values = {
        name: [np.where(rng.random(n) < 0.01, 1 - own, own) for _ in range(8)]
        for name, own in (("plain", base), ("same", other))
    }
    scores = {name: [run.mean() for run in runs] for name, runs in values.items()}
    images = ImageScores(values, np.zeros(n, dtype=int), np.ones(1))
    row = by_name(compare(scores, "plain", metric="accuracy", images=images, equivalent_within=0.06))["same"]
    assert (row.standing, row.holds_for) == ("practically equal", holds_for)


@pytest.mark.parametrize(("n", "comparisons"), [(6, 1), (8, 3), (12, 2), (20, 3)])
def test_the_promised_chance_is_kept(n, comparisons):
    rng, within, level = np.random.default_rng(5), 1.6, 0.05 / comparisons
    d = rng.normal(size=(400, n))
    found = np.mean([equivalence_test(row, within) <= level for row in d])
    assert equality_power(n, within, comparisons=comparisons) == pytest.approx(found, abs=0.06)


def test_pairs_for_equality():
    n = pairs_for_equality(0.8, comparisons=3)
    assert equality_power(n, 0.8, comparisons=3) >= 0.8 > equality_power(n - 1, 0.8, comparisons=3)
    assert pairs_for_equality(1e-3) is None
    assert pairs_for_equality(100.0) == 6


def test_false_equality_is_rare_at_the_margin():
    rng, studies, false = np.random.default_rng(6), 300, 0
    for _ in range(studies):
        d = rng.normal(size=(3, 8)) + np.array([1.0, -1.0, 1.0])[:, None]
        rows = {"plain": np.zeros(8), **{str(i): row for i, row in enumerate(d)}}
        verdict = compare(rows, "plain", metric="score", equivalent_within=1.0)
        false += any(m.p_equal <= 0.05 for m in verdict.methods)
    assert false / studies <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)
