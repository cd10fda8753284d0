"""Metrics and intervals against plain numpy."""

import numpy as np
import pytest
import torch

from equipoise.analysis import balanced_accuracy, expected_calibration_error, negative_log_likelihood, top1
from equipoise.improvement.judged import CHOICES, class_weights, compared, metrics, score


def drawn(seed, n=300):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), n, replacement=True, generator=generator)
    return 2 * torch.randn(n, 3, generator=generator).double() + torch.nn.functional.one_hot(labels, 3), labels


def test_metrics_are_those_of_the_analysis():
    logits, labels = drawn(0)
    found = metrics(logits, labels, class_weights(labels, None))
    assert found["accuracy"] == pytest.approx(float(top1(logits, labels)))
    assert found["balanced_accuracy"] == pytest.approx(float(balanced_accuracy(logits.argmax(1), labels, 3)))
    assert found["nll"] == pytest.approx(float(negative_log_likelihood(logits, labels)))
    assert found["ece"] == pytest.approx(float(expected_calibration_error(logits.softmax(1), labels)))


@pytest.mark.parametrize("metric", CHOICES)
def test_one_metric_alone_is_the_same(metric):
    logits, labels = drawn(6)
    weights = class_weights(labels, torch.tensor([0.2, 0.5, 0.3]).double())
    assert score(metric, logits, labels, weights) == pytest.approx(metrics(logits, labels, weights)[metric])


def test_a_prior_counts_each_class_by_its_share():
    logits, labels = drawn(1)
    prior = torch.tensor([0.2, 0.5, 0.3]).double()
    found = metrics(logits, labels, class_weights(labels, prior))
    pred, nll = logits.argmax(1), -logits.log_softmax(1)[torch.arange(len(labels)), labels]
    by_class = [((pred[labels == c] == c).double().mean(), nll[labels == c].mean()) for c in range(3)]
    assert found["accuracy"] == pytest.approx(float(sum(q * a for q, (a, _) in zip(prior, by_class, strict=True))))
    assert found["nll"] == pytest.approx(float(sum(q * b for q, (_, b) in zip(prior, by_class, strict=True))))


def test_the_interval_of_a_difference_is_that_of_drawn_classes():
    """Against the normal interval of balanced accuracy, whose variance within classes has a formula."""
    (before, labels), (noise, _) = drawn(2, n=2000), drawn(3, n=2000)
    after = before + 0.7 * noise
    found = compared(before, after, labels, class_weights(labels, None), seed=0)["balanced_accuracy"]
    change = ((after.argmax(1) == labels).double() - (before.argmax(1) == labels).double()).numpy()
    own = [change[labels.numpy() == c] for c in range(3)]
    mean = np.mean([values.mean() for values in own])
    half = 1.96 * np.sqrt(sum(values.var() / len(values) for values in own)) / 3
    assert found.difference.value == pytest.approx(mean)
    assert found.difference.low == pytest.approx(mean - half, abs=0.1 * half)
    assert found.difference.high == pytest.approx(mean + half, abs=0.1 * half)


def test_the_same_network_twice_has_no_difference():
    logits, labels = drawn(4)
    for found in compared(logits, logits, labels, class_weights(labels, None), seed=0).values():
        assert (found.difference.low, found.difference.value, found.difference.high) == (0, 0, 0)
        assert not found.is_better and not found.is_worse


def test_intervals_hold_what_they_should():
    """Of 60 samples from a known law, about 95 % of the intervals hold the true accuracy and likelihood."""
    big_logits, big_labels = drawn(5, n=200_000)
    truth = metrics(big_logits, big_labels, class_weights(big_labels, None))
    held = {"accuracy": 0, "balanced_accuracy": 0, "nll": 0}
    for seed in range(60):
        logits, labels = drawn(100 + seed, n=250)
        scores = compared(logits, logits, labels, class_weights(labels, None), seed=0)
        for name in held:
            held[name] += scores[name].before.low <= truth[name] <= scores[name].before.high
    assert all(52 <= count <= 60 for count in held.values()), held
