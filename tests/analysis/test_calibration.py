import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise import analysis


def slow_log_softmax(row):
    top = max(row)
    return [z - top - math.log(sum(math.exp(v - top) for v in row)) for z in row]


def slow_ece(probs, labels, bins):
    """Bin by bin, (lo, hi], the first one with 0."""
    total = 0.0
    for b in range(bins):
        inside = []
        for row, y in zip(probs, labels, strict=True):
            confidence = max(row)
            if b / bins < confidence <= (b + 1) / bins or (b == 0 and confidence == 0):
                inside.append((confidence, list(row).index(confidence) == y))
        if inside:
            gap = abs(sum(right for _, right in inside) - sum(c for c, _ in inside)) / len(inside)
            total += len(inside) / len(labels) * gap
    return total


def random_probs(seed, n=60, c=4):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(c, 0.5), n), rng.integers(0, c, n)


@pytest.mark.parametrize("seed", range(5))
def test_against_loops(seed):
    probs, labels = random_probs(seed)
    logits = np.random.default_rng(seed).normal(0, 5, (60, 4))
    slow = [slow_log_softmax(row) for row in logits]
    np.testing.assert_allclose(analysis.log_softmax(logits), slow, rtol=1e-12)
    nll = -sum(row[y] for row, y in zip(slow, labels, strict=True)) / 60
    assert analysis.negative_log_likelihood(logits, labels) == pytest.approx(nll, rel=1e-12)
    for bins in (1, 7, 15):
        assert analysis.expected_calibration_error(probs, labels, bins) == pytest.approx(slow_ece(probs, labels, bins))
    brier = sum(sum((p - (j == y)) ** 2 for j, p in enumerate(r)) for r, y in zip(probs, labels, strict=True)) / 60
    assert analysis.brier_score(probs, labels) == pytest.approx(brier)


@given(st.integers(0, 10_000), st.integers(1, 30))
def test_ece_lies_between_0_and_1(seed, bins):
    probs, labels = random_probs(seed, n=1 + seed % 20, c=1 + seed % 5)
    assert 0 <= analysis.expected_calibration_error(probs, labels, bins) <= 1


def test_ece_edges_belong_to_the_bin_below():
    # ten bins, both confidences in (0.2, 0.3]: |1 + 0 - 0.3 - 0.25| / 2. Split at 0.3 it would be (0.7 + 0.25) / 2.
    probs = [[0.3, 0.25, 0.25, 0.2], [0.25, 0.25, 0.25, 0.25]]
    assert analysis.expected_calibration_error(probs, [0, 1], bins=10) == pytest.approx(0.225)


def test_ece_just_above_an_edge_goes_up():
    up = math.nextafter(0.3, 1)
    probs = [[up, 0.2, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    assert analysis.expected_calibration_error(probs, [0, 1], bins=10) == pytest.approx((0.7 + 0.25) / 2)


def test_ece_of_confidence_0_and_of_rounding_above_1():
    assert analysis.expected_calibration_error([[0.0, 0.0]], [0]) == 1.0
    assert analysis.expected_calibration_error([[1.0 + 1e-7, 0.0]], [0]) == 0.0


def test_by_hand():
    assert analysis.expected_calibration_error([[0.9, 0.1]] * 4, [0, 0, 0, 1]) == pytest.approx(0.15)  # 0.9 - 3/4
    assert analysis.negative_log_likelihood([[0.0, 0.0, 0.0]], [2]) == pytest.approx(math.log(3))
    assert analysis.brier_score([[0.0, 1.0]], [0]) == 2.0


def test_extreme_logits():
    assert analysis.negative_log_likelihood([[1e4, -1e4]], [1]) == 2e4
    assert analysis.negative_log_likelihood([[1e4, -1e4]], [0]) == 0.0
    assert analysis.negative_log_likelihood([[0.0, -math.inf]], [0]) == 0.0  # a class ruled out
    assert analysis.negative_log_likelihood([[0.0, -math.inf]], [1]) == math.inf


def test_half_precision_tensors_are_summed_in_double():
    logits = torch.linspace(-3, 3, 3000, dtype=torch.float16).reshape(1000, 3)
    labels = torch.arange(1000) % 3
    exact = analysis.negative_log_likelihood(logits.double(), labels)
    assert analysis.negative_log_likelihood(logits, labels) == exact


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: analysis.expected_calibration_error([[3.0, -1.0]], [0]), "are these logits"),
        (lambda: analysis.expected_calibration_error([[math.nan, 0.5]], [0]), "probs are not finite"),
        (lambda: analysis.expected_calibration_error([[0.5, 0.5]], [0], bins=0), "bins must be at least 1"),
        (lambda: analysis.brier_score([[0.5, 1.5]], [0]), "between 0 and 1"),
        (lambda: analysis.negative_log_likelihood([[0.5, 1.5]], [0, 0]), "1 rows of logits and 2 labels"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
