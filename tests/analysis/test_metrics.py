import math

import numpy as np
import pytest
import torch

from equipoise import analysis
from equipoise.analysis import METRICS, evaluate

COUNTS = [300, 200, 60, 30, 8, 0]


def test_evaluate_is_each_function():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(80, 6)), rng.integers(0, 6, 80)
    pred = logits.argmax(axis=1)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    by_class = [float(np.mean(pred[labels == c] == c)) for c in range(6)]
    scores = evaluate(logits, labels, COUNTS)
    assert list(scores) == list(METRICS)
    assert all(type(value) is float for value in scores.values())
    assert scores == pytest.approx(
        {
            "accuracy": np.mean(pred == labels),
            "balanced_accuracy": np.mean(by_class),
            "worst_class": min(by_class),
            "many": np.mean(by_class[:2]),
            "medium": np.mean(by_class[2:4]),
            "few": np.mean(by_class[4:]),
            "nll": -np.mean(np.log(probs[np.arange(80), labels])),
            "ece": analysis.expected_calibration_error(probs, labels),
        }
    )
    assert evaluate(torch.tensor(logits), torch.tensor(labels), torch.tensor(COUNTS)) == scores


def test_facts_of_the_metrics():
    assert all(name == metric.name for name, metric in METRICS.items())
    assert {name for name, metric in METRICS.items() if not metric.higher_is_better} == {"nll", "ece"}
    assert {name for name, metric in METRICS.items() if metric.unit == "nats"} == {"nll"}


@pytest.mark.parametrize("name", METRICS)
def test_the_direction_is_true(name):
    """The right classes, surely, are better than the wrong ones, surely, whatever the metric."""
    labels = np.arange(60) % 6
    right, wrong = 20 * np.eye(6)[labels], 20 * np.eye(6)[(labels + 1) % 6]
    function = METRICS[name].function
    good, bad = function(right, labels, np.array(COUNTS)), function(wrong, labels, np.array(COUNTS))
    assert good > bad if METRICS[name].higher_is_better else good < bad


def test_two_classes_have_no_medium_group():
    scores = evaluate([[1.0, 0.0]], [0], [30, 10])
    assert scores["many"] == 1.0
    assert math.isnan(scores["medium"])
    assert math.isnan(scores["few"])  # class 1 is not among the labels


def test_counts_of_another_task_are_refused():
    with pytest.raises(ValueError, match="logits with 2 classes but class_counts of length 3"):
        evaluate([[1.0, 0.0]], [0], [1, 2, 3])
