"""What a round settles, drops and gives up; and that claims stay rare where nothing differs, however a study ends."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.analysis import compare, sign_flip_test
from equipoise.analysis.statistics.looks import Looks, plan_looks
from equipoise.analysis.statistics.power import claim_power
from equipoise.analysis.statistics.sequential import LEAST_HOPE, Round, Rounds, judge

LOOKS = Looks((10, 14, 20), (1 / 3, 1 / 3, 1 / 3))
START = Rounds(0.05, LOOKS, tuple(range(20)))
NOISE = np.random.default_rng(0).normal(0, 0.01, (6, 20))


def scores(n=10, **means):
    return {name: mean + NOISE[i, :n] for i, (name, mean) in enumerate(means.items())}


def test_what_is_surely_worse_is_dropped_and_the_baseline_never():
    found = judge(scores(plain=0.5, bad=0.3, good=0.7, best=0.9), "plain", START, higher_is_better=True)
    assert found.methods == ("plain", "bad", "good", "best")
    assert found.dropped == {"bad": "surely worse than plain", "good": "surely worse than best"}
    assert found.kept == ("plain", "best")
    assert found.open == found.given_up == ()


def test_lower_is_better():
    found = judge(scores(plain=0.5, bad=0.7, best=0.3), "plain", START, higher_is_better=False)
    assert found.dropped == {"bad": "surely worse than plain"} and found.kept == ("plain", "best")


def test_two_good_methods_stay_to_be_told_apart():
    found = judge(scores(plain=0.5, a=0.9, b=0.905), "plain", START, higher_is_better=True)
    assert found.dropped == {}
    assert found.open == ("a against b",)


def test_hope():
    """A question is given up by the chance of an answer at the last look, with one standard error to its favour."""
    x = np.array([-1.0, 1, -1, 1, -1, 1, -1, 1, -1, 1])
    for mean, is_open in ((0.0, False), (0.01, False), (0.2, True), (0.4, True)):
        d = x + mean
        found = judge({"plain": np.zeros(10), "other": d}, "plain", START, higher_is_better=True)
        effect = abs(d.mean()) / d.std(ddof=1) + 1 / math.sqrt(10)
        assert (claim_power(20, effect, 0.05 / 3) >= LEAST_HOPE) == is_open
        assert (found.open, found.given_up) == (
            (("other against plain",), ()) if is_open else ((), ("other against plain",))
        )


def test_at_the_last_look_nothing_is_open():
    rounds = replace(START, found=(Round(("plain", "a"), {}, (), ()),) * 2)
    found = judge(scores(20, plain=0.5, a=0.5), "plain", rounds, higher_is_better=True)
    assert found.open == () and found.given_up == ("a against plain",)


def test_equal_methods_are_given_up_at_once():
    same = np.linspace(0.4, 0.6, 10)
    found = judge({"plain": same, "a": same}, "plain", START, higher_is_better=True)
    assert found.given_up == ("a against plain",) and not found.dropped


def test_a_method_without_finished_runs_is_dropped():
    runs = scores(plain=0.5, a=0.9, dead=0.5)
    runs["dead"][:] = math.nan
    found = judge(runs, "plain", START, higher_is_better=True)
    assert found.dropped == {"dead": "shares no finished run with plain"}
    runs["plain"][:] = math.nan
    assert judge(runs, "plain", START, higher_is_better=True).kept == ("plain",)


def test_dropped_methods_still_count_in_the_family():
    """Else the best of many could be tested as if it had been the only one."""
    d = np.array([1.0] * 9 + [-0.5])  # p = 4 / 1024, times 3 for the look: 0.0117; five times that is too much
    others = {f"m{i}": np.where(np.arange(20) < 10, NOISE[i], math.nan) for i in range(4)}
    assert sign_flip_test(d) == 4 / 1024
    many = {"plain": np.zeros(20), "a": np.concatenate([d, np.full(10, math.nan)]), **others}
    few = {name: many[name] for name in ("plain", "a")}
    first = replace(START, looks=Looks((10, 20), (1 / 3, 2 / 3)))
    assert "a against plain" in judge(many, "plain", first, higher_is_better=True).open
    assert judge(few, "plain", first, higher_is_better=True).open == ()


def test_methods_dropped_before_count_at_later_looks_too():
    a = np.array([1.0] * 12 + [-1.0] * 2)  # p = 2 (1 + 14 + 91) / 2^14 = 0.013, times 3 for the look
    others = {f"m{i}": np.where(np.arange(14) < 10, NOISE[i, :14], math.nan) for i in range(4)}
    first = Round(("plain", "a", *others), dict.fromkeys(others, "surely worse than a"), (), ())
    runs, rounds = {"plain": np.zeros(14), "a": a, **others}, replace(START, found=(first,))
    found = judge(runs, "plain", rounds, higher_is_better=True)
    assert found.methods == ("plain", "a") and "a against plain" in found.open + found.given_up
    alone = judge({"plain": runs["plain"], "a": a}, "plain", rounds, higher_is_better=True)
    assert alone.open + alone.given_up == ()


def test_nobody_is_compared_with_a_best_that_was_dropped():
    first = Round(("plain", "lucky", "a"), {"lucky": "surely worse than a"}, (), ())
    runs = {"plain": NOISE[0, :14], "lucky": np.where(np.arange(14) < 10, 9.0, math.nan), "a": NOISE[1, :14]}
    found = judge(runs, "plain", replace(START, found=(first,)), higher_is_better=True)
    assert found.dropped == {} and not any("lucky" in question for question in found.open + found.given_up)


def test_a_dropped_method_does_not_come_back():
    first = judge(scores(plain=0.5, bad=0.3, a=0.505), "plain", START, higher_is_better=True)
    rounds = replace(START, found=(first,))
    assert first.kept == ("plain", "a") and rounds.taken == {"plain": 1, "bad": 1, "a": 1}
    later = scores(14, plain=0.5, bad=0.9, a=0.505)  # whatever is in the store of it after its last look
    second = judge(later, "plain", rounds, higher_is_better=True)
    assert second.methods == ("plain", "a")
    assert replace(rounds, found=(first, second)).taken == {"plain": 2, "bad": 1, "a": 2}


def test_plain_data_and_back():
    first = judge(scores(plain=0.5, bad=0.3, a=0.9), "plain", START, higher_is_better=True)
    rounds = replace(START, found=(first,), ended="settled", judged_on="test")
    assert Rounds.from_dict(json.loads(json.dumps(rounds.to_dict()))) == rounds


# -- no false claims ---------------------------------------------------------------------------------------------------


def until_decided(valid, test, rounds):
    """A whole study on made-up scores (methods, seeds): rounds judged on `valid`, the verdict on `test`."""
    for n in rounds.looks.seeds:
        found = judge({f"m{i}": x[:n] for i, x in enumerate(valid)}, "m0", rounds, higher_is_better=True)
        rounds = replace(rounds, found=(*rounds.found, found))
        if not found.open:
            break
    seen = {f"m{i}": x[:n] for i, x in enumerate(test)}
    return compare(seen, "m0", metric="made up", looks=rounds.looks, taken=rounds.taken), rounds


@pytest.mark.parametrize("shared", [1.0, 0.5], ids=["judged on the same scores", "judged on related scores"])
def test_false_claims_are_rare_however_the_study_ends(shared):
    rng, studies, false, early = np.random.default_rng(0), 300, 0, 0
    rounds = Rounds(0.05, plan_looks(13, 2), tuple(range(13)))
    assert len(rounds.looks.seeds) > 2
    for _ in range(studies):
        test = rng.standard_t(4, size=(3, 13))
        valid = shared * test + (1 - shared) * rng.normal(size=test.shape)
        verdict, after = until_decided(valid, test, rounds)
        early += len(after.found) < len(rounds.looks.seeds)
        false += any(m.standing in ("better", "worse") or m.tier != 1 for m in verdict.methods)
    assert false / studies <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)
    assert early > studies / 20, "no study ended early: the test shows nothing"


def test_without_shares_the_same_rounds_would_lie():
    """What the shares are for: with the whole of alpha at each look, more than 5 % of such studies would claim."""
    rng, studies, false = np.random.default_rng(0), 1000, 0
    for d in rng.normal(size=(studies, 14)):
        false += any(sign_flip_test(d[:n]) <= 0.05 for n in plan_looks(14, 1).seeds)
    assert false / studies > 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)
