import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from equipoise.analysis import Verdict, compare, holm, seeds_needed, sign_flip_test
from equipoise.analysis.statistics.looks import Looks

NAN = math.nan


def study(n=8, seed=0, **means):
    """Scores that share a seed effect, as paired runs do."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 0.01, n)
    return {name: mean + common + rng.normal(0, 0.003, n) for name, mean in means.items()}


def by_name(verdict):
    return {m.name: m for m in verdict.methods}


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


def test_sentences_of_a_clear_study():
    offset = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) / 1000
    scores = {
        "plain": np.full(8, 0.7),
        "good": 0.7305 + offset,
        "bad": 0.6 + offset,
        "close": 0.7 + 0.2 * (offset - 0.004),
    }
    said = compare(scores, "plain").sentences()
    # mean 0.735; its half width is that of the offsets, 0.2048 points
    assert said[0] == (
        "good beats plain: it reaches 73.5 % balanced accuracy (73.3 to 73.7, n = 8), 3.5 points better; bad is worse; "
        "3 compared."
    )
    # mean of offset 0.0045, standard error 0.00245 / sqrt 8 = 0.000866, t(7) 2.365: half width 0.2048 points
    assert said[1] == (
        "good is better than plain by 3.50 points (95 % interval 3.30 to 3.70, n = 8 pairs, p = 0.00781, "
        "Holm-adjusted 0.0234)."
    )
    assert said[2].startswith(
        "close is not separable from plain: +0.01 points (95 % interval -0.03 to +0.05, n = 8 pairs"
    )
    planned = by_name(compare(scores, "plain"))["close"].seeds_needed
    assert f"about {planned} pairs, {planned - 8} more, for an 80 % chance to show." in said[2]
    assert said[3].startswith("bad is worse than plain by 9.55 points (95 % interval 9.35 to 9.75,")
    assert said[4] == "No two methods of a tier are separable (tier 1: good; tier 2: close, plain; tier 3: bad)."
    best = f"close and plain of tier 2, which differ by 0.01 points, about {planned} pairs, {planned - 8} more."
    assert said[5] == f"To tell apart the best two of a tier would take: {best}"
    assert said[6].startswith("8 pairs can support a claim")
    assert said[7].startswith("Claims rest on two-sided exact sign-flip tests") and "Holm-adjusted over 3" in said[7]
    assert len(said) == 8


def test_sentences_of_a_metric_where_lower_is_better():
    offset = np.linspace(-0.01, 0.01, 6)
    said = compare({"plain": np.full(6, 0.9), "good": 0.78 + offset}, "plain", metric="nll").sentences()
    # six values from -0.01 to 0.01 have a standard error of 0.003055, t(5) 2.571: half width 0.00785
    assert said[0] == (
        "good beats plain: it reaches 0.780 nats negative log-likelihood (0.772 to 0.788, n = 6), 0.120 nats better; "
        "1 compared."
    )
    rounded = compare({"plain": [0.0, 0.0], "other": [-1e-5, -2e-5]}, "plain", metric="nll").sentences()
    assert "+0.000 nats (95 % interval +0.000 to +0.000" in rounded[2]  # no -0.000
    assert said[1].startswith("good is better than plain by 0.120 nats (95 % interval 0.112 to 0.128, n = 6 pairs, ")


def test_sentences_say_when_nothing_can_be_said_and_when_too_much_is_needed():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=6)
    scores = {"plain": np.zeros(6), "a": noise - noise.mean() + 1e-3, "b": np.ones(6)}
    said = compare(scores, "plain", metric="unheard_of").sentences()
    assert said[0] == (
        "So far b looks best, 1 better in 6 pairs; 1 more seed would probably show it. "
        "No method is shown to beat plain, which reaches 0 unheard_of (0 to 0, n = 6); 2 compared."
    )
    assert said[1].startswith("6 pairs cannot support any claim") and said[1].endswith("so at least 7 pairs.")
    assert "b is not separable from plain: +1 (" in said[2] and "about 7 pairs, 1 more" in said[2]
    assert said[3].endswith("more than 1000 pairs would be needed to separate them.")


def test_two_winners_and_one_seed_are_said():
    said = compare({"plain": [0.5] * 8, "a": [0.7] * 8, "b": [0.6] * 8}, "plain").sentences()
    assert said[0].endswith("20.0 points better; b beats plain too; 2 compared.")
    one = compare({"plain": [0.5], "a": [0.7]}, "plain").sentences()
    assert one[0] == (
        "So far a looks best, 20.0 points better in 1 pair. "
        "No method is shown to beat plain, which reaches 50.0 % balanced accuracy (n = 1); 1 compared."
    )


def test_three_seeds_and_eight_methods_say_what_looks_best_and_what_it_costs_to_know():
    scores = study(3, plain=0.70, **{f"m{i}": 0.70 + 0.005 * i for i in range(1, 8)})
    verdict = replace(compare(scores, "plain"), seed_seconds=180.0)
    needed = by_name(verdict)["m7"].seeds_needed
    more = needed - 3
    assert verdict.sentences()[0].startswith("So far m7 looks best, 3.")
    cost = f" points better in 3 pairs; {more} more seeds ({3 * more} min of computing here) would probably show it."
    assert cost in verdict.sentences()[0]
    assert verdict.sentences()[1].startswith("3 pairs cannot support any claim")


def test_every_sentence_names_its_formula():
    headings = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text().splitlines()
    anchors = {re.sub("[^a-z ]", "", h[3:].lower()).strip().replace(" ", "-") for h in headings if h.startswith("## ")}
    told = compare(study(8, plain=0.70, good=0.75, close=0.70), "plain", looks=Looks((8,), (0.9,))).explained()
    told += (
        compare(study(8, plain=0.70, close=0.70), "plain", equivalent_within=0.05).on_broken_premise("x").explained()
    )
    assert {sentence.formula for sentence in told} <= anchors
    assert {"the-claims", "tiers", "seeds-in-rounds"} <= {sentence.formula for sentence in told}


def test_a_broken_premise_is_said_first_and_withholds_the_claims():
    scores = study(8, plain=0.70, good=0.75, bad=0.60)
    usual = compare({**scores, "close": scores["plain"]}, "plain")
    verdict = usual.on_broken_premise("Training has not converged.")
    assert {m.name: m.standing for m in verdict.methods} == {
        "good": "withheld",
        "close": "not separable",
        "plain": "baseline",
        "bad": "withheld",
    }
    assert [m.p_holm for m in verdict.methods[:1]] == [m.p_holm for m in usual.methods[:1]]
    said = verdict.sentences()
    assert said[0].startswith("Training has not converged. No method is called better or worse than plain, which ")
    assert not any(" is better than" in s or " is worse" in s or " beat" in s for s in said)
    assert any(s.startswith("good differs from plain by +") and s.endswith("the claim is withheld.") for s in said)
    assert any(s.startswith("Of training this short, and not as a claim: no two methods of a tier") for s in said)
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))).sentences() == said


def test_a_broken_premise_that_is_accepted_leaves_the_claims():
    scores = study(8, plain=0.70, good=0.75)
    usual = compare(scores, "plain")
    verdict = usual.on_broken_premise("Too short, and accepted.", accepted=True)
    assert verdict.methods == usual.methods
    assert verdict.sentences()[0] == f"Too short, and accepted. {usual.sentences()[0]}"
    assert verdict.sentences()[1:] == usual.sentences()[1:]


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


# -- studies that add seeds in rounds ---------------------------------------------------------------------------------

LOOKS = Looks((6, 8, 12), (0.25, 0.25, 0.5))


def test_each_p_value_is_divided_by_the_share_of_its_look():
    scores = study(12, plain=0.70, good=0.75, early=0.60, close=0.70)
    verdict = compare(scores, "plain", looks=LOOKS, taken={"plain": 3, "good": 3, "early": 2, "close": 3})
    cut = {"good": 12, "early": 8, "close": 12}
    p = {name: sign_flip_test((scores[name] - scores["plain"])[:n]) for name, n in cut.items()}
    assert p["early"] == 2 / 2**8
    adjusted = holm([p["good"] / 0.5, p["early"] / 0.25, p["close"] / 0.5])
    for (name, n), value in zip(cut.items(), adjusted, strict=True):
        m = by_name(verdict)[name]
        assert (m.n, m.n_pairs, m.p, m.p_holm) == (n, n, p[name], value)
        assert m.difference == pytest.approx((scores[name] - scores["plain"])[:n].mean())
    assert {name: m.look for name, m in by_name(verdict).items()} == {"plain": 3, "good": 3, "early": 2, "close": 3}
    # 2 / 256 / 0.25 = 0.031 for early is doubled by Holm: too much for a claim
    standings = {name: by_name(verdict)[name].standing for name in cut}
    assert standings == {"good": "better", "early": "not separable", "close": "not separable"}


def test_a_claim_that_a_fixed_study_makes_may_need_more_in_rounds():
    ones = {"plain": np.zeros(6), "other": np.ones(6)}
    assert by_name(compare(ones, "plain"))["other"].standing == "better"
    early = by_name(compare(ones, "plain", looks=LOOKS))["other"]
    assert (early.standing, early.p_holm, early.look) == ("not separable", 4 * 2 / 64, 1)


def test_scores_between_two_looks_are_not_used():
    scores = study(12, plain=0.70, other=0.75)
    at_eight = compare({name: x[:8] for name, x in scores.items()}, "plain", looks=LOOKS)
    between = compare({name: x[:11] for name, x in scores.items()}, "plain", looks=LOOKS)
    assert between.methods == at_eight.methods
    before = compare({name: x[:5] for name, x in scores.items()}, "plain", looks=LOOKS)
    assert {(m.standing, m.n) for m in before.methods} == {("baseline", 0), ("no data", 0)}


def test_the_other_pairs_are_judged_at_the_look_they_share():
    scores = {"plain": np.zeros(12), "a": np.linspace(3, 3.1, 12), "b": np.linspace(2, 2.1, 12), "c": np.ones(12)}
    taken = {"plain": 3, "a": 3, "b": 3, "c": 2}
    verdict = compare(scores, "plain", looks=LOOKS, taken=taken)
    # 3 other pairs: (a, b) of 12 seeds counts 2 / 4096 / 0.5; those with c, of 8 seeds, 2 / 256 / 0.25 = 1 / 32
    assert {m.name: m.tier for m in verdict.methods} == {"a": 1, "b": 2, "c": 2, "plain": 3}
    p = {(pair.first, pair.second): pair.p_holm for pair in verdict.pairs}
    assert p["a", "c"] == p["b", "c"] == pytest.approx(2 / 32)  # Holm doubles them


def test_sentences_of_a_study_in_rounds():
    scores = study(12, plain=0.70, good=0.75, early=0.60)
    scores["good"][3] = NAN
    verdict = compare(scores, "plain", looks=LOOKS, taken={"plain": 3, "good": 3, "early": 2})
    said = verdict.sentences()
    assert "the first claim needs p <= 0.025/2" in " ".join(said)  # half of 0.05 is the last look's
    assert "adjusted for looks and by Holm" in said[1]
    assert "Left out of the later rounds: early after 8 seeds." in said
    assert "Runs that failed or are missing, left out with their pairs: 1 of 12 of good." in said
    assert said[-1].startswith("Seeds were added in rounds, with looks planned beforehand after 6, 8, 12 seeds.")
    assert "1.25, 1.25, 2.5 % of error, 5 % in all" in said[-1]
    again = Verdict.from_dict(json.loads(json.dumps(verdict.to_dict(), allow_nan=False)))
    assert again.looks == LOOKS and again.sentences() == said


def test_wrong_alpha():
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
        compare({"plain": [1.0]}, "plain", alpha=5)
