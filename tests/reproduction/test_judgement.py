"""Where a new mean falls, and what follows for a published number."""

import math

import numpy as np
import pytest

from equipoise.reproduction import Cell, StudyRecords, judge, new_mean_interval
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


def test_too_few_runs_and_none():
    assert judge(cell("70.0"), records(plain=(60, 61))).state == "too few runs"
    assert judge(cell("70.0"), records(focal=(60, 61))).state == "not run"
    assert judge(cell("70.0"), None).state == "not run"
