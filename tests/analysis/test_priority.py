"""Scores under the user's own priority, against loops over samples."""

import json
import math

import numpy as np
import pytest
import torch

from equipoise.analysis import METRICS, compare, evaluate
from equipoise.analysis.statistics.priority import (
    ALL_METRICS,
    PRIORITY_METRICS,
    WORDS,
    Priority,
    check_classes,
    image_values,
    read_priority,
    score,
)
from equipoise.core import EquipoiseError

NAMES = ["cat", "dog", "owl"]
COUNTS = [60, 30, 10]
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 50)
LOGITS = RNG.normal(size=(50, 3)) + 1.5 * np.eye(3)[LABELS]


def slow(prior, cost):
    """Mean of cost[true][predicted] of each class, weighted by the prior, in loops."""
    total = weight = 0.0
    for c in range(3):
        paid = [cost[c][int(np.argmax(z))] for z, y in zip(LOGITS, LABELS, strict=True) if y == c]
        total += prior[c] * sum(paid) / len(paid)
        weight += prior[c]
    return total / weight


RIGHT = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
COSTS = [[0, 1, 2], [5, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("plain", "metric", "expected"),
    [
        ("balanced", "balanced_accuracy", slow([1, 1, 1], RIGHT)),
        ("natural", "natural_accuracy", slow(COUNTS, RIGHT)),
        ({"prior": "natural"}, "natural_accuracy", slow(COUNTS, RIGHT)),
        ({"prior": "balanced"}, "balanced_accuracy", slow([1, 1, 1], RIGHT)),
        ({"prior": {"owl": 0.7, "cat": 0.3, "dog": 0}}, "prior_accuracy", slow([0.3, 0, 0.7], RIGHT)),
        ({"prior": [3, 0, 7]}, "prior_accuracy", slow([0.3, 0, 0.7], RIGHT)),
        ({"costs": COSTS}, "cost", slow([1, 1, 1], COSTS)),
        ({"costs": {"cat": {"owl": 2}, "dog": {"cat": 5}}}, "cost", slow([1, 1, 1], COSTS)),
        ({"costs": COSTS, "prior": "natural"}, "cost", slow(COUNTS, COSTS)),
        ({"costs": COSTS, "prior": [1, 0, 1]}, "cost", slow([1, 0, 1], COSTS)),
    ],
    ids=str,
)
def test_scores(plain, metric, expected):
    priority = read_priority(plain)
    assert priority.metric == metric
    assert score(LOGITS, LABELS, COUNTS, priority, NAMES) == pytest.approx(expected)
    assert Priority(**json.loads(json.dumps(priority.to_dict()))) == priority
    check_classes(priority, NAMES)
    tensors = torch.tensor(LOGITS), torch.tensor(LABELS), torch.tensor(COUNTS)
    assert score(*tensors, priority, NAMES) == pytest.approx(expected)
    for outputs in ((LOGITS, LABELS, COUNTS), tensors):
        values, strata, shares = image_values(*outputs, priority, NAMES)
        means = np.array([values[strata == c].mean() for c in range(3)])
        assert shares @ means / shares.sum() == pytest.approx(expected)


def test_image_by_image_of_accuracy_and_of_what_is_no_mean():
    values, strata, shares = image_values(LOGITS, LABELS, COUNTS, Priority("accuracy"))
    assert values.mean() == evaluate(LOGITS, LABELS, COUNTS)["accuracy"]
    assert not strata.any() and shares.tolist() == [1.0]
    assert image_values(LOGITS, LABELS, COUNTS, read_priority("worst_class")) is None


@pytest.mark.parametrize("word", ["worst_class", "calibration", "balanced"])
def test_words_that_are_metrics_already(word):
    found = score(LOGITS, LABELS, COUNTS, read_priority(word))
    assert found == evaluate(LOGITS, LABELS, COUNTS)[WORDS[word]]


def test_by_hand():
    logits, labels = np.eye(2)[[0, 0, 1, 0]], [0, 0, 1, 1]  # of two classes: all of the first right, half of the second
    assert score(logits, labels, [90, 10], read_priority("natural")) == pytest.approx(0.9 * 1 + 0.1 * 0.5)
    costs = read_priority({"costs": [[0, 1], [8, -0.0]]})
    assert score(logits, labels, [90, 10], costs) == pytest.approx((0 + 4) / 2)


def test_a_class_without_samples_is_left_out():
    keep = LABELS != 2
    priority = read_priority({"prior": [1, 1, 98]})
    found = score(LOGITS[keep], LABELS[keep], COUNTS, priority)
    assert found == pytest.approx(score(LOGITS, LABELS, COUNTS, read_priority({"prior": [1, 1, 0]})))
    assert math.isnan(score(LOGITS[keep], LABELS[keep], COUNTS, read_priority({"prior": [0, 0, 1]})))
    cost = score(LOGITS[keep], LABELS[keep], COUNTS, read_priority({"costs": COSTS}))
    assert cost == pytest.approx(score(LOGITS, LABELS, COUNTS, read_priority({"costs": COSTS, "prior": [1, 1, 0]})))


def test_every_score_has_a_name_a_unit_and_a_direction():
    assert {read_priority(word).metric for word in WORDS} | {"prior_accuracy", "cost"} <= set(ALL_METRICS)
    assert not PRIORITY_METRICS.keys() & METRICS.keys()
    with pytest.raises(ValueError, match="depends on the study's priority"):
        PRIORITY_METRICS["cost"].function(LOGITS, LABELS, np.array(COUNTS))


def test_the_verdict_speaks_of_costs():
    runs = {"plain": np.full(6, 2.0), "cheap": np.linspace(0.9, 1.1, 6)}
    verdict = compare(runs, "plain", metric="cost")
    assert not verdict.higher_is_better
    said = verdict.sentences()
    assert said[0].startswith("cheap beats plain: it reaches 1 mean cost of a prediction (") and said[0].endswith(
        "n = 6), 1 better; 1 compared."
    )
    assert said[1].startswith("cheap is better than plain by 1 (95 % interval")


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ("balansed", "no priority is named 'balansed'. Did you mean 'balanced'"),
        (3, "no priority is named 3"),
        (None, "no priority is named None"),
        ({}, "has a prior, costs or both, not nothing"),
        ({"cost": [[0]]}, "has a prior, costs or both, not 'cost'"),
        ({"prior": "natrual"}, "Did you mean 'natural'"),
        ({"prior": []}, "a weight of 0 or more"),
        ({"prior": [0, 0]}, "a weight of 0 or more"),
        ({"prior": [1, -1]}, "a weight of 0 or more"),
        ({"prior": {"cat": "much"}}, "a weight of 0 or more"),
        ({"prior": {"cat": True}}, "a weight of 0 or more"),
        ({"prior": [1, math.nan]}, "a weight of 0 or more"),
        ({"prior": [1, math.inf]}, "a weight of 0 or more"),
        ({"prior": 0.5}, "a weight of 0 or more"),
        ({"costs": 3}, "costs must have a row"),
        ({"costs": []}, "costs must have a row"),
        ({"costs": [1, 2]}, "costs must have a row"),
        ({"costs": {"cat": 3}}, "costs must have a row"),
        ({"costs": [[0, "x"], [1, 0]]}, "costs must have a row"),
    ],
    ids=str,
)
def test_what_is_no_priority(plain, message):
    with pytest.raises(EquipoiseError, match=message):
        read_priority(plain)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"prior": {"cat": 1, "dog": 1, "cow": 1}}, "no class of prior is named 'cow'. Did you mean 'owl'"),
        ({"prior": {"cat": 1, "dog": 1}}, "prior lacks the class 'owl'"),
        ({"prior": [1, 1]}, "prior has 2 weights for 3 classes"),
        ({"costs": {"cow": {"cat": 1}}}, "no class of costs is named 'cow'"),
        ({"costs": {"cat": {"cow": 1}}}, "no class of costs.cat is named 'cow'"),
        ({"costs": [[0, 1], [1, 0]]}, "3 rows of 3 numbers"),
        ({"costs": [[0, 1, 1], [1, 0, 1]]}, "3 rows of 3 numbers"),
        ({"costs": [[0, 1, 1], [1, 0], [1, 0, 1]]}, "3 rows of 3 numbers"),
    ],
    ids=str,
)
def test_what_does_not_fit_the_classes(plain, message):
    with pytest.raises(EquipoiseError, match=message):
        check_classes(read_priority(plain), NAMES)
    with pytest.raises(EquipoiseError, match=message):
        score(LOGITS, LABELS, COUNTS, read_priority(plain), NAMES)


def test_outputs_that_cannot_be_judged():
    with pytest.raises(ValueError, match="not finite in 1 of 2 rows"):
        score([[0.0, math.nan], [0.0, 1.0]], [0, 1], [1, 1], read_priority("natural"))
    with pytest.raises(ValueError, match="logits with 3 classes but class_counts of length 2"):
        score(LOGITS, LABELS, [1, 1], read_priority("natural"))
