import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics.functional import classification as torchmetrics

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
    # log p near 0 is a difference of numbers near 1 or more, whose last digit is its error
    np.testing.assert_allclose(analysis.log_softmax(logits), slow, rtol=1e-12, atol=1e-14)
    nll = -sum(row[y] for row, y in zip(slow, labels, strict=True)) / 60
    assert analysis.negative_log_likelihood(logits, labels) == pytest.approx(nll, rel=1e-12)
    for bins in (1, 7, 15):
        assert analysis.expected_calibration_error(probs, labels, bins) == pytest.approx(slow_ece(probs, labels, bins))
    brier = sum(sum((p - (j == y)) ** 2 for j, p in enumerate(r)) for r, y in zip(probs, labels, strict=True)) / 60
    assert analysis.brier_score(probs, labels) == pytest.approx(brier)


def slow_adaptive(probs, labels, bins):
    """Sorted by confidence, cut into runs of as equal a size as can be; the confidences must differ."""
    rows = sorted((max(row), list(row).index(max(row)) == y) for row, y in zip(probs, labels, strict=True))
    total = 0.0
    for b in range(bins):
        inside = [row for rank, row in enumerate(rows) if rank * bins // len(rows) == b]
        total += abs(sum(right - confidence for confidence, right in inside))
    return total / len(rows)


def slow_classwise(probs, labels, bins):
    """Class by class and bin by bin, (lo, hi], the first one with 0."""
    total = 0.0
    for c in range(probs.shape[1]):
        for b in range(bins):
            inside = [i for i, p in enumerate(probs[:, c]) if b / bins < p <= (b + 1) / bins or (b == 0 and p == 0)]
            if inside:
                share = sum(labels[i] == c for i in inside) / len(inside)
                given = sum(probs[i, c] for i in inside) / len(inside)
                total += len(inside) / len(labels) * abs(share - given)
    return total / probs.shape[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bins", [1, 7, 15, 100])  # of 60 samples
def test_other_bins_against_loops(seed, bins):
    probs, labels = random_probs(seed)
    assert analysis.adaptive_calibration_error(probs, labels, bins) == pytest.approx(slow_adaptive(probs, labels, bins))
    classwise = analysis.classwise_calibration_error(probs, labels, bins)
    assert classwise == pytest.approx(slow_classwise(probs, labels, bins))


@pytest.mark.parametrize(("n", "classes"), [(1000, 10), (500, 3)])
def test_ece_against_torchmetrics(n, classes):
    """Equal where no confidence is an edge: theirs are [lo, hi), and a confidence of 1 is in a bin of its own."""
    probs, labels = (torch.tensor(x) for x in random_probs(5, n, classes))
    for bins in (1, 10, 15):
        trusted = float(torchmetrics.multiclass_calibration_error(probs, labels, classes, n_bins=bins))  # in float32
        assert float(analysis.expected_calibration_error(probs, labels, bins)) == pytest.approx(trusted, abs=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 30))
def test_calibration_errors_lie_between_0_and_1(seed, bins):
    probs, labels = random_probs(seed, n=1 + seed % 20, c=1 + seed % 5)
    assert 0 <= analysis.expected_calibration_error(probs, labels, bins) <= 1
    assert 0 <= analysis.adaptive_calibration_error(probs, labels, bins) <= 1
    assert 0 <= analysis.classwise_calibration_error(probs, labels, bins) <= 1


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_calibration_errors_ignore_the_order_of_samples(seed, random):
    rng = np.random.default_rng(seed)
    probs, labels = rng.dirichlet([1, 1, 1], 4)[rng.integers(0, 4, 20)], rng.integers(0, 3, 20)  # equal confidences
    order = random.sample(range(20), 20)
    for error in (
        analysis.expected_calibration_error,
        analysis.adaptive_calibration_error,
        analysis.classwise_calibration_error,
    ):
        assert error(probs[order], labels[order]) == pytest.approx(error(probs, labels), abs=1e-12)


def test_equal_confidences_share_a_bin():
    # in sorted halves this would be (|2 - 1.6| + |0 - 1.6|) / 4; together they are |2 - 3.2| / 4
    probs = [[0.8, 0.2]] * 4
    assert analysis.adaptive_calibration_error(probs, [0, 0, 1, 1], bins=2) == pytest.approx(0.3)


def test_groups_are_of_the_class_predicted():
    probs = [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.0, 0.7, 0.3], [0.0, 0.6, 0.4]]
    found = analysis.group_calibration_error(probs, [0, 1, 1, 2], class_counts=[500, 50, 5])
    # called 0: (0.9, right) in bin 14 and (0.8, wrong) in bin 12; called 1: (0.7, right) and (0.6, wrong)
    assert found["many"] == pytest.approx((0.1 + 0.8) / 2)
    assert found["medium"] == pytest.approx((0.3 + 0.6) / 2)
    assert math.isnan(found["few"])


def test_a_calibrated_network_has_no_error_in_any_group():
    # 8 of 10 right with 0.8 of class 0, 6 of 10 right with 0.6 of class 1: grouped by label neither would be 0
    probs = [[0.8, 0.2]] * 10 + [[0.4, 0.6]] * 10
    labels = [0] * 8 + [1] * 2 + [1] * 6 + [0] * 4
    found = analysis.group_calibration_error(probs, labels, class_counts=[90, 10])
    assert (found["many"], found["few"]) == pytest.approx((0, 0), abs=1e-15)


def test_sigmoid_probabilities_are_divided_by_the_row_sum():
    logits = np.random.default_rng(0).normal(0, 3, (20, 5))
    sigmoids = 1 / (1 + np.exp(-logits))
    expected = sigmoids / sigmoids.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(analysis.sigmoid_probabilities(logits), expected, rtol=1e-12)
    np.testing.assert_allclose(analysis.sigmoid_log_probabilities(logits), np.log(expected), rtol=1e-12)
    labels = np.arange(20) % 5
    nll = analysis.negative_log_likelihood(analysis.sigmoid_log_probabilities(logits), labels)
    assert nll == pytest.approx(-np.log(expected[np.arange(20), labels]).mean(), rel=1e-12)


def test_sigmoid_probabilities_of_extreme_logits():
    rows = analysis.sigmoid_probabilities([[-1e4, -1e4], [1e4, 1e4], [1e4, -1e4], [0.0, -math.inf]])
    np.testing.assert_array_equal(rows, [[0.5, 0.5], [0.5, 0.5], [1, 0], [1, 0]])


def test_arrays_are_answered_in_their_kind():
    probs, labels = random_probs(0, c=3)
    for function in (
        analysis.expected_calibration_error,
        analysis.adaptive_calibration_error,
        analysis.classwise_calibration_error,
        analysis.brier_score,
    ):
        tensor = function(torch.tensor(probs, requires_grad=True), torch.tensor(labels))
        assert isinstance(tensor, torch.Tensor)
        assert not tensor.requires_grad
        assert type(function(probs, labels)) is float
        assert float(tensor) == function(probs, labels) == function(probs.tolist(), labels.tolist())
    assert isinstance(analysis.log_softmax(torch.tensor(probs)), torch.Tensor)


def test_half_precision_probabilities():
    probs = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    for dtype in (torch.float16, torch.bfloat16):
        assert float(analysis.expected_calibration_error(probs.to(dtype), torch.tensor([0, 1]))) == 0.375


def test_parts_add_up(monkeypatch):
    probs, labels = random_probs(3)
    whole = analysis.classwise_calibration_error(probs, labels)
    monkeypatch.setattr(analysis.metrics.calibration, "CHUNK", 28)
    assert analysis.classwise_calibration_error(probs, labels) == pytest.approx(whole, abs=1e-15)


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
        (lambda: analysis.adaptive_calibration_error([[0.5, 0.5]], [0], bins=0), "bins must be at least 1"),
        (lambda: analysis.classwise_calibration_error([[0.5, 0.5]], [0], bins=0), "bins must be at least 1"),
        (lambda: analysis.classwise_calibration_error([[0.5, 0.5]], [2]), "labels has class 2"),
        (lambda: analysis.group_calibration_error([[0.5, 0.5]], [0], [1, 2, 3]), "class_counts of length 3"),
        (lambda: analysis.sigmoid_probabilities([[0.0, math.nan]]), "not finite in 1 of 1 rows"),
        (lambda: analysis.log_softmax([0.0, 1.0]), r"shape \(N, C\)"),
        (lambda: analysis.brier_score([[0.5, 1.5]], [0]), "between 0 and 1"),
        (lambda: analysis.negative_log_likelihood([[0.5, 1.5]], [0, 0]), "1 rows of logits and 2 labels"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
