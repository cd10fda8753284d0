"""Where a new mean falls, and what follows for a published number."""

import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.reproduction import Cell, StudyRecords, judge, new_mean_interval
from equipoise.reproduction.judgement import names_one_class
from equipoise.reproduction.records import RunRecord


def records(**scores):
    runs = [
        RunRecord(method, seed, f"{method}{seed}", "images", {"accuracy": value / 100}, 1, 1.0, "2026", "CPU", {})
        for method, values in scores.items()
        for seed, value in enumerate(values)
    ]
    return StudyRecords("study", "?", "plain", "accuracy", {method: {} for method in scores}, tuple(runs))


def cell(printed, **about):
    return Cell(**{"table": "table 1", "study": "study", "method": "plain", "metric": "accuracy", "place": ""} | about,
                printed=printed)  # fmt: skip


def test_interval_by_the_formula():
    values, t = [70.0, 71.0, 72.0, 73.0, 74.0], 2.776445  # of 4 degrees of freedom, from a table
    half = t * math.sqrt(2.5) * math.sqrt(1 / 5 + 1 / 8)
    assert new_mean_interval(values, runs=8) == pytest.approx((72 - half, 72 + half), rel=1e-6)


def test_new_means_fall_into_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    draws, hits = 4000, 0
    for _ in range(draws):
        low, high = new_mean_interval(rng.normal(70, 0.7, size=4), runs=3)
        hits += low <= rng.normal(70, 0.7, size=3).mean() <= high
    assert hits / draws == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / draws))


@pytest.mark.parametrize(
    ("published", "state"),
    [
        (cell("71.5"), "inside"),
        # mean 71, s = 1, n = 3: ± 4.303 · sqrt(1/3 + 1) = 4.969; half of the last digit on top
        (cell("75.9"), "inside"),
        (cell("76.0"), "inside"),
        (cell("76.1"), "outside"),
        (cell("75.98"), "outside"),
        (cell("28.5", metric="error"), "inside"),
        # of 25 runs: ± 4.303 · sqrt(1/3 + 1/25) = 2.629
        (cell("73.6", n=25), "inside"),
        (cell("73.8±0.03", n=25), "outside"),
        (cell("76.1", differs="other epochs"), "recipe differs, outside"),
        (cell("70.0", differs="other epochs"), "recipe differs, inside"),
    ],
)
def test_states(published, state):
    judgement = judge(published, records(plain=(70, 71, 72)))
    assert judgement.state == state and judgement.n == 3 and judgement.mean == pytest.approx(71)


def test_a_gain_is_judged_by_pairs():
    found = records(plain=(60, 70, 80), focal=(61, 71.5, 81.2))
    gain = cell("1.2", method="focal", metric="gain in accuracy", against="plain")
    judgement = judge(gain, found)
    assert judgement.mean == pytest.approx((1 + 1.5 + 1.2) / 3) and judgement.high < 3 and judgement.state == "inside"


def stuck(share, classes=10, **other):
    """Scores of naming one class, of so large a share of the test images, for all of them."""
    f1 = float(f"{2 * share / (1 + share) / classes:.6g}")
    return {"accuracy": share, "balanced_accuracy": 1 / classes, "macro_f1": f1, "worst_class": 0.0} | other


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
@pytest.mark.parametrize("share", [None, 0.7])
def test_scores_of_naming_one_class(classes, share):
    assert names_one_class(stuck(share or 1 / classes, classes))


@pytest.mark.parametrize(
    "scores",
    [
        {},
        stuck(0.1, worst_class=0.01),
        stuck(0.1, macro_f1=0.0185),  # another class is named too
        stuck(0.1, balanced_accuracy=0.13),
        stuck(0.1, balanced_accuracy=0.0),
        {"accuracy": 1.0, "balanced_accuracy": 1.0, "macro_f1": 1.0, "worst_class": 1.0},
    ],
)
def test_scores_of_naming_several(scores):
    assert not names_one_class(scores)


def test_runs_that_learned_nothing_make_no_interval_to_be_inside_of():
    found = records(plain=(93.8, 94.0, 10.0), focal=(93.0, 93.1, 93.2))
    *learned, lost = found.runs[:3]
    found = replace(found, runs=(*learned, replace(lost, metrics=stuck(0.1)), *found.runs[3:]))
    judgement = judge(cell("93.8", differs="other epochs"), found)
    assert judgement.low < 93.8 < judgement.high
    assert judgement.state == "recipe differs, outside"
    assert judge(cell("93.1", method="focal"), found).state == "inside"
    gain = judge(cell("0.1", method="focal", metric="gain in accuracy", against="plain"), found)
    assert gain.state == "outside"


def test_too_few_runs_and_none():
    assert judge(cell("70.0"), records(plain=(60, 61))).state == "too few runs"
    assert judge(cell("70.0"), records(focal=(60, 61))).state == "not run"
    assert judge(cell("70.0"), None).state == "not run"
