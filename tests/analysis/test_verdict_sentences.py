"""What a verdict says in words."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from equipoise.analysis import Verdict, compare
from equipoise.analysis.statistics.looks import Looks

from .verdicts import by_name, study

NAN = math.nan


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
