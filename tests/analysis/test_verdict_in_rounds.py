"""Verdicts of studies that add seeds in rounds."""

import json
import math

import numpy as np
import pytest

from equipoise.analysis import Verdict, compare, holm, sign_flip_test
from equipoise.analysis.statistics.looks import Looks

from .verdicts import by_name, study

NAN = math.nan
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
    assert repr(between.methods) == repr(at_eight.methods)  # as texts: from Python 3.13 on nan in them is not itself
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
