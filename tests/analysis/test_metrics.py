import math

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from equipoise import analysis
from equipoise.analysis import METRICS, evaluate
from equipoise.analysis.metrics import scores as metrics

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
    assert (
        scores
        == pytest.approx(
            {
                "accuracy": np.mean(pred == labels),
                "top5": np.mean(logits.argmin(axis=1) != labels),  # of six classes
                "balanced_accuracy": np.mean(by_class),
                "macro_f1": f1_score(labels, pred, average="macro"),
                "worst_class": min(by_class),
                "many": np.mean(by_class[:2]),
                "medium": np.mean(by_class[2:4]),
                "few": np.mean(by_class[4:]),
                "nll": -np.mean(np.log(probs[np.arange(80), labels])),
                "brier": np.mean(((probs - np.eye(6)[labels]) ** 2).sum(axis=1)),
                "ece": analysis.expected_calibration_error(probs, labels),
            }
        )
    )
    assert evaluate(torch.tensor(logits), torch.tensor(labels), torch.tensor(COUNTS)) == scores


def test_facts_of_the_metrics():
    assert all(name == metric.name for name, metric in METRICS.items())
    assert {name for name, metric in METRICS.items() if not metric.higher_is_better} == {"nll", "brier", "ece"}
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


def test_top5_of_five_classes_is_1():
    assert evaluate([[1.0, 0.9, 0.8, 0.7, 0.6]], [4], [5] * 5)["top5"] == 1.0
    assert evaluate([[1.0, 0.9, 0.8, 0.7, 0.6, 0.5]], [5], [5] * 6)["top5"] == 0.0


def test_extreme_logits():
    scores = evaluate([[1e4, -1e4], [0.0, -math.inf]], [1, 0], [30, 10])
    assert (scores["nll"], scores["brier"], scores["accuracy"]) == (1e4, 1.0, 0.5)
    assert evaluate([[0.0, -math.inf]], [1], [30, 10])["nll"] == math.inf


@pytest.mark.parametrize("chunk", [1, 40, 10**6])
def test_parts_add_up(monkeypatch, chunk):
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(33, 6)).astype(np.float32), rng.integers(0, 6, 33)
    whole = evaluate(logits, labels, COUNTS)
    monkeypatch.setattr(analysis.metrics.calibration, "CHUNK", chunk)
    assert evaluate(logits, labels, COUNTS) == pytest.approx(whole, rel=1e-14)


def test_nothing_is_asked_of_the_device_before_the_end():
    """Tensors without values: any look at one, which on a GPU waits for it, is an error there."""
    logits, labels = torch.empty(40, 7, device="meta"), torch.empty(40, dtype=torch.long, device="meta")
    counts = torch.empty(7, dtype=torch.float64, device="meta")
    assert metrics._numbers(logits, labels, counts).shape == (len(METRICS) + 3,)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_the_same_on_a_gpu():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(2000, 6)), rng.integers(0, 6, 2000)
    on_gpu = evaluate(torch.tensor(logits, device="cuda"), torch.tensor(labels, device="cuda"), COUNTS)
    assert on_gpu == pytest.approx(evaluate(logits, labels, COUNTS), rel=1e-12)
    assert analysis.top1(torch.tensor(logits, device="cuda"), labels).device.type == "cuda"


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ([[0.0, math.nan], [0.0, 1.0]], [0, 0], "not finite in 1 of 2 rows"),
        ([[0.0, math.inf]], [0], "not finite"),
        ([[-math.inf, -math.inf]], [0], "not finite"),
        ([[0.0, 1.0]], [2], "labels has class 2; with 2 classes they run from 0 to 1"),
        ([[0.0, 1.0]], [-1], "labels has class -1"),
        ([[0.0, 1.0]], [0.0], "whole numbers"),
        ([[0.0, 1.0]], [0, 1], "1 rows of logits and 2 labels"),
        (np.empty((0, 2)), np.empty(0, int), r"shape \(N, C\)"),
    ],
)
def test_what_cannot_be_judged_is_refused(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        evaluate(logits, labels, [30, 10])


def test_counts_of_another_task_are_refused():
    with pytest.raises(ValueError, match="logits with 2 classes but class_counts of length 3"):
        evaluate([[1.0, 0.0]], [0], [1, 2, 3])
