"""Every number of a verdict: differences, intervals, p-values, standings and tiers."""

import itertools
import json
import math

import numpy as np
import pytest
import torch
from scipy import stats

from equipoise.analysis import Verdict, compare, holm, seeds_needed, sign_flip_test

from .verdicts import by_name, study

NAN = math.nan


def test_every_number_of_a_method():
    scores = study(plain=0.70, good=0.75, close=0.70)
    verdict = compare(scores, "plain")
    d = {name: scores[name] - scores["plain"] for name in ("good", "close")}
    p = {name: sign_flip_test(x) for name, x in d.items()}
    adjusted = dict(zip(p, holm(list(p.values())), strict=True))
    for name, x in d.items():
        m = by_name(verdict)[name]
        assert (m.n, m.n_pairs) == (8, 8)
        assert m.mean == pytest.approx(scores[name].mean())
        own = stats.t.interval(0.95, 7, scores[name].mean(), stats.sem(scores[name]))
        assert (m.low, m.high) == pytest.approx(own)
        assert m.difference == pytest.approx(x.mean())
        assert (m.diff_low, m.diff_high) == pytest.approx(stats.t.interval(0.95, 7, x.mean(), stats.sem(x)))
        assert (m.p, m.p_holm) == (p[name], adjusted[name])
    results = by_name(verdict)
    assert results["good"].standing == "better"
    assert results["good"].seeds_needed is None
    assert results["close"].standing == "not separable"
    assert results["close"].seeds_needed == max(9, seeds_needed(d["close"], 0.05, comparisons=2))
    base = results["plain"]
    assert (base.standing, base.n, base.n_pairs) == ("baseline", 8, 0)
    assert all(math.isnan(x) for x in (base.difference, base.diff_low, base.p, base.p_holm))


def test_ranking_and_direction():
    scores = study(plain=0.5, high=0.6, low=0.4)
    up = compare(scores, "plain", metric="accuracy")
    assert [(m.name, m.standing) for m in up.methods] == [("high", "better"), ("plain", "baseline"), ("low", "worse")]
    down = compare(scores, "plain", metric="nll")  # the metric knows that lower is better
    assert [(m.name, m.standing) for m in down.methods] == [("low", "better"), ("plain", "baseline"), ("high", "worse")]
    assert by_name(down)["low"].difference < 0
    forced = compare(scores, "plain", metric="nll", higher_is_better=True)
    assert forced.to_dict()["methods"] == up.to_dict()["methods"]
    assert compare(scores, "plain", metric="mine").higher_is_better


def test_six_seeds_cannot_speak_of_five_methods_however_far_apart():
    far = study(6, plain=0.1, a=0.9, b=0.8, c=0.7, d=0.6, e=0.5)
    verdict = compare(far, "plain")
    assert {m.standing for m in verdict.methods} == {"baseline", "not separable"}
    assert {m.p_holm for m in verdict.methods if m.name != "plain"} == {5 * 2 / 64}
    assert {m.seeds_needed for m in verdict.methods if m.name != "plain"} == {8}
    assert {m.tier for m in verdict.methods} == {1}
    eight = compare(study(8, plain=0.1, a=0.9, b=0.8, c=0.7, d=0.6, e=0.5), "plain")
    assert {m.standing for m in eight.methods} == {"baseline", "better"}
    assert [m.tier for m in eight.methods] == [1, 1, 1, 1, 1, 2]  # ten other pairs: 10 * 2 / 256 is above 0.05
    nine = compare(study(9, plain=0.1, a=0.9, b=0.8, c=0.7, d=0.6, e=0.5), "plain")
    assert [m.tier for m in nine.methods] == [1, 2, 3, 4, 5, 6]


def test_a_claim_at_alpha_exactly_counts():
    ones = {"plain": np.zeros(6), "other": np.ones(6)}
    assert by_name(compare(ones, "plain", alpha=2 / 64))["other"].standing == "better"
    assert by_name(compare(ones, "plain", alpha=0.031))["other"].standing == "not separable"


def test_a_plan_already_met_asks_for_one_more():
    # eight pairs suffice in the plan, but one fell on the wrong side: p = 4/256, times 5 for five methods
    d = np.array([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0, -0.05])
    equal = {f"equal{i}": np.zeros(8) for i in range(4)}
    m = by_name(compare({"plain": np.zeros(8), "other": d, **equal}, "plain"))["other"]
    assert seeds_needed(d, comparisons=5) == 8
    assert (m.standing, m.p_holm, m.seeds_needed) == ("not separable", 5 * 4 / 256, 9)


def slow_tiers(scores, baseline, alpha=0.05):
    """The rule in words: claims; if there are any, the other pairs; then down the ranking."""

    def lower_of(pairs):
        p = [sign_flip_test(np.subtract(scores[a], scores[b])) for a, b in pairs]
        found = [pair for pair, adjusted in zip(pairs, holm(p), strict=True) if adjusted <= alpha]
        return [tuple(sorted(pair, key=lambda name: np.mean(scores[name]))) for pair in found]

    others = [name for name in scores if name != baseline]
    below = lower_of([(name, baseline) for name in others])
    if below:
        below += lower_of(list(itertools.combinations(others, 2)))
    tiers = [[]]
    for name in sorted(scores, key=lambda name: -np.mean(scores[name])):
        if any((name, other) in below for other in tiers[-1]):
            tiers.append([])
        tiers[-1].append(name)
    return {name: i for i, names in enumerate(tiers, 1) for name in names}


@pytest.mark.parametrize("seed", range(6))
def test_tiers(seed):
    scores = study(9, seed, plain=0.70, a=0.701, b=0.71, c=0.712, d=0.72)
    verdict = compare(scores, "plain")
    tiers = slow_tiers(scores, "plain")
    assert {m.name: m.tier for m in verdict.methods} == tiers
    assert max(tiers.values()) > 1


def test_no_second_tier_without_a_claim():
    """Or a split among methods none of which is said to differ would be a claim through the back door."""
    noise = 0.5 * np.array([1, -1, 1, -1, 1, -1, 1, -1])
    scores = {"plain": 0.5 + noise, "high": np.full(8, 0.6), "low": np.full(8, 0.4)}
    verdict = compare(scores, "plain")
    assert sign_flip_test(scores["high"] - scores["low"]) == 2 / 256
    assert {m.tier for m in verdict.methods} == {1}


def test_a_method_claimed_better_is_never_in_the_tier_of_the_baseline():
    far = study(9, plain=0.1, **{name: 0.5 for name in "abcdefgh"})  # 28 pairs of others need 11 seeds, 8 claims need 9
    verdict = compare(far, "plain")
    assert {m.standing for m in verdict.methods} == {"better", "baseline"}
    assert [m.tier for m in verdict.methods] == [1] * 8 + [2]


def test_tiers_follow_the_ranking_also_past_a_noisy_method():
    steady = np.full(8, 0.70)
    noisy = 0.69 + 0.2 * np.array([1, -1, 1, -1, 1, -1, 1, -1])
    verdict = compare({"best": steady + 0.02, "steady": steady, "noisy": noisy}, "steady")
    assert [(m.name, m.tier) for m in verdict.methods] == [("best", 1), ("steady", 2), ("noisy", 2)]


@pytest.mark.parametrize("seed", range(20))
def test_tiers_ranking_claims_and_pairs_tell_one_story(seed):
    rng = np.random.default_rng(seed)
    spread = rng.choice([0.002, 0.02, 0.1], 6)[:, None]
    runs = 0.7 + rng.normal(0, 0.02, (6, 1)) + spread * rng.normal(size=(6, 10))
    verdict = compare({f"m{i}": row for i, row in enumerate(runs)}, "m0")
    tiers = [m.tier for m in verdict.methods]
    assert tiers == sorted(tiers)
    rows, pairs = by_name(verdict), {frozenset((p.first, p.second)): p for p in verdict.pairs}
    assert len(pairs) == 15
    for (a, b), pair in ((tuple(names), pair) for names, pair in pairs.items()):
        assert pair.p == sign_flip_test(runs[int(a[1:])] - runs[int(b[1:])])
        if rows[a].tier == rows[b].tier:
            assert pair.p_holm > 0.05
        if "m0" in (a, b):
            other = rows[b if a == "m0" else a]
            assert pair.p_holm == other.p_holm and (pair.p_holm <= 0.05) == (other.standing in ("better", "worse"))
    if {m.standing for m in verdict.methods} == {"baseline", "not separable"}:
        assert all(pair.p_holm > 0.05 for pair in verdict.pairs)
    for best in verdict.best:
        first, second, *_ = [m.name for m in verdict.methods if m.tier == best.tier]
        assert (best.first, best.second) == (first, second)
        d = runs[int(first[1:])] - runs[int(second[1:])]
        needed = seeds_needed(d, comparisons=5 if "m0" in (first, second) else 10)
        assert (best.difference, best.seeds_needed) == (pytest.approx(d.mean()), needed and max(needed, 11))


def test_failing_on_hard_seeds_does_not_win():
    # "lucky" has the best mean, and yet is below the baseline on each of the eight seeds they share
    lucky = np.array([0.8] * 8 + [NAN] * 8)
    plain = np.array([0.81] * 8 + [0.5] * 8)
    verdict = compare({"lucky": lucky, "plain": plain}, "plain")
    assert [(m.name, m.standing, m.tier) for m in verdict.methods] == [("plain", "baseline", 1), ("lucky", "worse", 2)]
    assert verdict.methods[1].mean > verdict.methods[0].mean


def test_the_first_need_not_win_its_pairs_when_runs_are_missing():
    lucky = np.array([0.80] * 8 + [NAN] * 8)
    steady = np.array([0.81] * 8 + [0.70] * 8)  # better wherever both ran
    verdict = compare({"plain": np.full(16, 0.7), "steady": steady, "lucky": lucky}, "plain")
    assert [(m.name, m.tier) for m in verdict.methods] == [("lucky", 1), ("steady", 1), ("plain", 2)]


def test_uneven_pairs_are_judged_by_the_most():
    short = np.array([1.0] * 5 + [NAN] * 4)
    verdict = compare({"plain": np.zeros(9), "full": np.ones(9), "short": short}, "plain")
    assert any(sentence.startswith("9 pairs can support a claim") for sentence in verdict.sentences())
    assert {name: m.standing for name, m in by_name(verdict).items()} == {
        "plain": "baseline",
        "full": "better",
        "short": "not separable",
    }


def test_missing_runs_are_dropped_in_pairs():
    scores = study(10, plain=0.7, other=0.75, dead=0.7)
    scores["plain"][3], scores["other"][5], scores["dead"][:] = NAN, NAN, NAN
    verdict = compare(scores, "plain")
    results = by_name(verdict)
    keep = [0, 1, 2, 4, 6, 7, 8, 9]
    d = scores["other"][keep] - scores["plain"][keep]
    assert (results["plain"].n, results["other"].n, results["other"].n_pairs) == (9, 9, 8)
    assert results["other"].difference == pytest.approx(d.mean())
    assert results["other"].p_holm == sign_flip_test(d)  # a method without data is no comparison
    assert verdict.methods[-1].name == "dead"
    assert (results["dead"].standing, results["dead"].tier, results["dead"].n) == ("no data", None, 0)
    text = " ".join(verdict.sentences())
    assert "1 of 10 of other, 1 of 10 of plain, 10 of 10 of dead" in text
    assert "dead shares no finished seed with plain" in text


def test_runs_without_a_shared_seed():
    verdict = compare({"plain": [0.7, 0.7, NAN, NAN], "other": [NAN, NAN, 0.9, 0.9]}, "plain")
    assert by_name(verdict)["other"].standing == "no data"
    assert [(m.name, m.tier) for m in verdict.methods] == [("plain", 1), ("other", None)]
    assert verdict.sentences()[0] == "Nothing can be compared with plain on balanced accuracy."


def test_one_seed():
    verdict = compare({"plain": [0.7], "other": [0.9]}, "plain")
    m = by_name(verdict)["other"]
    assert (m.standing, m.p, m.seeds_needed, m.tier) == ("not separable", 1.0, None, 1)
    assert math.isnan(m.low) and math.isnan(m.diff_high)
    text = " ".join(verdict.sentences())
    assert "1 pair cannot support any claim" in text
    assert "+20.00 points (95 % interval unknown, n = 1 pair, p = 1" in text


def test_all_equal():
    verdict = compare({"plain": [0.7] * 8, "a": [0.7] * 8, "b": [0.7] * 8}, "plain")
    assert [m.name for m in verdict.methods] == ["plain", "a", "b"]
    assert {(m.standing, m.p, m.seeds_needed, m.tier) for m in verdict.methods[1:]} == {("not separable", 1.0, None, 1)}
    assert "they do not differ in what was observed" in verdict.sentences()[2]


def test_one_method_only():
    verdict = compare({"plain": [0.7, 0.8]}, "plain")
    assert [(m.name, m.standing, m.tier) for m in verdict.methods] == [("plain", "baseline", 1)]
    assert verdict.sentences() == ["Nothing can be compared with plain on balanced accuracy."]


def test_more_than_fourteen_seeds():
    scores = study(16, plain=0.70, other=0.7015)
    verdict = compare(scores, "plain", seed=3)
    assert verdict.to_dict() == compare(scores, "plain", seed=3).to_dict()
    assert by_name(verdict)["other"].p != by_name(compare(scores, "plain", seed=4))["other"].p
    assert "sign-flip tests (99,999 random sign patterns)" in verdict.sentences()[-1]


def test_json_round_trip():
    scores = study(7, plain=0.7, other=0.75, dead=0.7)
    scores["dead"][:] = NAN
    verdict = compare(scores, "plain", alpha=0.1)
    text = json.dumps(verdict.to_dict(), allow_nan=False)
    again = Verdict.from_dict(json.loads(text))
    assert again.to_dict() == verdict.to_dict()
    assert again.sentences() == verdict.sentences()
    dead = by_name(again)["dead"]
    assert math.isnan(dead.mean) and math.isnan(dead.p) and dead.tier is None and dead.seeds_needed is None
    assert isinstance(again.methods, tuple)


def test_tensors_and_integers():
    verdict = compare({"plain": torch.zeros(6), "other": [1, 1, 1, 1, 1, 1]}, "plain")
    assert by_name(verdict)["other"].standing == "better"


@pytest.mark.parametrize("spread", [np.random.Generator.normal, np.random.Generator.standard_t])
def test_without_a_true_difference_false_claims_are_rare(spread):
    rng = np.random.default_rng(0)
    arguments = {"size": (6, 8)} if spread is np.random.Generator.normal else {"df": 2, "size": (6, 8)}
    studies, false = 400, 0
    for _ in range(studies):
        runs = 0.7 + 0.01 * (rng.normal(size=8) + spread(rng, **arguments))
        verdict = compare({f"method{i}": row for i, row in enumerate(runs)}, "method0")
        false += any(m.standing in ("better", "worse") for m in verdict.methods)
    assert 0 < false / studies <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)


@pytest.mark.parametrize(
    ("scores", "baseline", "message"),
    [
        ({"a": [1.0]}, "plain", "baseline 'plain' has no scores; there are a"),
        ({}, "plain", "there are none"),
        ({"plain": [1.0, 2.0], "a": [1.0]}, "plain", "a has 1 and plain 2; put nan"),
        ({"plain": []}, "plain", "one number for each seed"),
        ({"plain": [[1.0]]}, "plain", "one number for each seed"),
        ({"plain": [1.0], "a": [math.inf]}, "plain", "scores of a are not finite"),
    ],
)
def test_wrong_scores(scores, baseline, message):
    with pytest.raises(ValueError, match=message):
        compare(scores, baseline)


def test_wrong_alpha():
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
        compare({"plain": [1.0]}, "plain", alpha=5)
