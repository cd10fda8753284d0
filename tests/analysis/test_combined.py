"""Several data sets together: against scipy, against published numbers, and against formulas written again here."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from equipoise.analysis import combine_scores, mean_effect
from equipoise.analysis.statistics.combined import unlike_test


def test_the_mean_is_judged_by_students_t():
    y = np.array([0.031, 0.012, 0.054, -0.008, 0.022])
    found, expected = mean_effect(y, np.full(5, 0.01)), stats.ttest_1samp(y, 0)
    low, high = expected.confidence_interval()
    assert (found.mean, found.low, found.high, found.p) == pytest.approx((y.mean(), low, high, expected.pvalue))


def test_spread_between_data_sets_as_published():
    """DerSimonian and Kacker 2007, tables 3 and 4: τ = 0.4410 by the estimate CA, metafor's method "HE"."""
    a, n = np.array([5, 5, 12, 69, 9, 313]), np.array([156, 303, 565, 1570, 103, 4659])
    c, m = np.array([8, 17, 9, 94, 11, 352]), np.array([74, 303, 477, 1565, 105, 4650])
    log_odds = np.log(a * (m - c) / ((n - a) * c))
    error = np.sqrt(1 / a + 1 / (n - a) + 1 / c + 1 / (m - c))
    assert mean_effect(log_odds, error).tau == pytest.approx(0.4410, abs=5e-5)


def test_a_further_data_set_by_its_formula():
    y = [1.0, 2.0, 4.0, 5.0]
    half = stats.t.ppf(0.975, 3) * np.std(y, ddof=1) * math.sqrt(1 + 1 / 4)
    found = mean_effect(y, [0.1] * 4)
    assert (found.next_low, found.next_high) == pytest.approx((3 - half, 3 + half))


def test_fewer_than_three_data_sets_have_a_mean_and_nothing_else():
    found = mean_effect([1.0, 3.0], [0.1, 0.1])
    assert found.mean == 2.0 and all(math.isnan(x) for x in found[1:])
    assert math.isnan(mean_effect([], []).mean)


def test_data_sets_that_are_equal_or_have_no_error():
    assert mean_effect([0.0] * 4, [0.1] * 4).p == 1.0
    assert mean_effect([1.0, 1.1, 0.9], [2.0, 2.0, 2.0]).tau == 0.0  # noise explains more than there is
    assert math.isnan(mean_effect([1.0, 2.0, 3.0], [0.1, math.nan, 0.1]).tau)


def test_welchs_test():
    """The formula is that of Welch 1951, written with loops; scipy has it from 1.16 on."""
    rng = np.random.default_rng(3)
    groups = [rng.normal(mean, sd, n) for mean, sd, n in ((0, 1, 6), (1, 2, 8), (0.3, 0.5, 5), (0.2, 1, 12))]
    k, w = len(groups), [len(g) / g.var(ddof=1) for g in groups]
    centre = sum(wi * g.mean() for wi, g in zip(w, groups, strict=True)) / sum(w)
    top = sum(wi * (g.mean() - centre) ** 2 for wi, g in zip(w, groups, strict=True)) / (k - 1)
    lam = sum((1 - wi / sum(w)) ** 2 / (len(g) - 1) for wi, g in zip(w, groups, strict=True))
    f = top / (1 + 2 * (k - 2) / (k**2 - 1) * lam)
    assert unlike_test(groups) == pytest.approx(stats.f.sf(f, k - 1, (k**2 - 1) / (3 * lam)))
    two = stats.ttest_ind(groups[0], groups[1], equal_var=False).pvalue
    assert unlike_test(groups[:2]) == pytest.approx(two)
    assert math.isnan(unlike_test(groups[:1])) and math.isnan(unlike_test([groups[0], np.ones(4)]))


def study(gains, seeds=6, noise=0.01, base=0.7, missing=()):
    """Scores by data set: a baseline and methods that are better by `gains[method][k]`."""
    rng, scores = np.random.default_rng(0), {}
    for k in range(len(next(iter(gains.values())))):
        plain = base + 0.02 * rng.normal(size=seeds)
        scores[f"data{k}"] = {"plain": plain} | {
            name: plain + gain[k] + noise * rng.normal(size=seeds)
            for name, gain in gains.items()
            if (name, k) not in missing
        }
    return scores


GAINS = {"up": [0.05, 0.06, 0.04, 0.05, 0.07, 0.05], "odd": [0.04, 0.05, 0.04, -0.06, 0.05, 0.04], "same": [0.0] * 6}


def test_who_is_better_and_which_data_set_disagrees():
    found = combine_scores(study(GAINS), "plain")
    rows = {method.name: method for method in found.methods}
    assert [m.name for m in found.methods][:2] == ["up", "odd"]
    assert rows["up"].standing == "better" and rows["up"].against == ()
    assert rows["odd"].standing == "not separable" and rows["odd"].against == ("data3",)
    assert rows["odd"].p_unlike < 1e-6 < 0.05 < rows["same"].p_unlike
    assert rows["plain"].standing == "baseline" and rows["plain"].effects == ()
    effect = rows["up"].effect_on("data2")
    difference = stats.ttest_1samp(np.subtract(*(study(GAINS)["data2"][n] for n in ("up", "plain"))), 0)
    assert (effect.low, effect.high) == pytest.approx(difference.confidence_interval())
    assert effect.error == pytest.approx(difference._standard_error)


def test_holm_over_the_methods():
    found = combine_scores(study(GAINS), "plain")
    p = sorted(method.p for method in found.methods if method.effects)
    expected = list(itertools.accumulate([3 * p[0], 2 * p[1], p[2]], max))
    assert sorted(m.p_holm for m in found.methods if m.effects) == pytest.approx(expected)


def test_every_pair_by_wilcoxons_test():
    scores = study(GAINS)
    found = combine_scores(scores, "plain")
    assert len(found.pairs) == 6
    pair = next(p for p in found.pairs if (p.first, p.second) == ("up", "odd"))
    means = [np.mean(d["up"] - d["odd"]) for d in scores.values()]
    assert (pair.mean, pair.p) == pytest.approx((np.mean(means), stats.wilcoxon(means, method="exact").pvalue))
    assert (pair.better, pair.worse, pair.n) == (sum(x > 0 for x in means), sum(x < 0 for x in means), 6)


def test_a_method_counts_where_it_is_and_ranks_need_all():
    missing = {("odd", 0), ("odd", 1)}
    found = combine_scores(study(GAINS, missing=missing), "plain")
    rows = {method.name: method for method in found.methods}
    assert [e.data for e in rows["odd"].effects] == ["data2", "data3", "data4", "data5"]
    assert list(rows["up"].ranks) == ["data2", "data3", "data4", "data5"]
    assert sum(method.rank for method in found.methods) == pytest.approx(1 + 2 + 3 + 4)
    none = combine_scores(study(GAINS, missing={("odd", k) for k in range(6)}), "plain")
    assert [m.name for m in none.methods if m.name == "odd"] == []


def test_where_lower_is_better():
    found = combine_scores(study(GAINS), "plain", metric="nll")
    rows = {method.name: method for method in found.methods}
    assert found.methods[-1].name == "up" and rows["up"].standing == "worse"
    assert rows["up"].rank > rows["plain"].rank


def test_two_data_sets_are_too_few_and_nan_becomes_none():
    scores = {name: of_data for name, of_data in study(GAINS).items() if name in ("data0", "data1")}
    found = combine_scores(scores, "plain")
    assert {m.standing for m in found.methods} == {"too few data sets", "baseline"}
    plain = found.to_dict()["methods"][0]
    assert plain["low"] is None and plain["mean"] == pytest.approx(found.methods[0].mean)


def test_seeds_that_are_missing_are_not_paired():
    scores = study({"up": [0.05] * 3})
    scores["data0"]["up"][0] = math.nan
    assert combine_scores(scores, "plain").methods[0].effects[0].n == 5
    with pytest.raises(ValueError, match="baseline 'gone' has no scores"):
        combine_scores(scores, "gone")


@pytest.mark.parametrize("tau", [0.0, 1.0])
def test_the_interval_holds_the_truth(tau):
    """Data sets of unlike noise, and a handful of seeds; 95 % is promised, and a share of 2,000 varies by 0.5 %."""
    rng, held = np.random.default_rng(1), 0
    for _ in range(2000):
        noise = np.exp(rng.normal(0, 0.6, 5))
        x = 0.5 + tau * rng.normal(size=(5, 1)) + noise[:, None] * rng.normal(size=(5, 4))
        found = mean_effect(x.mean(axis=1), x.std(axis=1, ddof=1) / 2)
        held += found.low <= 0.5 <= found.high
    assert 0.935 <= held / 2000 <= 0.98
