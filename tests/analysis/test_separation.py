import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from equipoise.analysis import ClassSeparation, class_separation
from equipoise.analysis.representations import _rows

METRICS = ["cosine", "centered_cosine", "euclidean"]


def slow_distance(x, y, metric):
    if metric == "euclidean":
        return ((x - y) ** 2).sum()
    size = np.linalg.norm(x) * np.linalg.norm(y)
    return 1 - (x @ y / size if size > 0 else 0.0)


def slow_separation(features, labels, metric):
    """Equation 11 of the paper, pair by pair."""
    x = np.asarray(features, dtype=np.float64).reshape(len(labels), -1)
    x = x - x.mean(axis=0) if metric == "centered_cosine" else x
    groups = [x[np.asarray(labels) == k] for k in sorted(set(labels))]
    mean = [[np.mean([[slow_distance(a, b, metric) for b in g] for a in f]) for g in groups] for f in groups]
    return 1 - np.mean(np.diag(mean)) / np.mean(mean)


def sample(seed, classes=4, width=5, spread=1.0):
    """Classes of 1, 3, 5, 7, ... samples around centres of their own."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), 2 * np.arange(classes) + 1)
    centres = rng.standard_normal((classes, width))
    return centres[labels] + spread * rng.standard_normal((len(labels), width)) + 0.5, labels


@pytest.mark.parametrize("values", [16, _rows.VALUES], ids=["small pieces", "one piece"])
@pytest.mark.parametrize("metric", METRICS)
def test_matches_pairs(metric, values, monkeypatch):
    monkeypatch.setattr(_rows, "VALUES", values)
    x, y = sample(0)
    assert class_separation(x, y, metric) == pytest.approx(slow_separation(x, y, metric), rel=1e-10)


@pytest.mark.parametrize("metric", METRICS)
def test_matches_pairs_of_digits(metric):
    digits = load_digits()
    x, y = digits.images[:150], digits.target[:150]  # (N, 8, 8), flattened
    assert class_separation(x, y, metric) == pytest.approx(slow_separation(x, y, metric), rel=1e-10)


def test_by_hand():
    # two classes at 0 and 2, each of width 1: within (0 + 1 + 1 + 0) / 4 = ½; between (4 + 9 + 1 + 4) / 4 = 4.5
    # total (½ + ½ + 4.5 + 4.5) / 4 = 2.5; 1 - ½ / 2.5
    assert class_separation([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], "euclidean") == pytest.approx(0.8)
    # within class 0: (0 + 1 + 1 + 0) / 4 = ½, class 1: 0; between (1 + 0) / 2 = ½; total (½ + 0 + ½ + ½) / 4 = 3/8
    assert class_separation([[1.0, 0.0], [0.0, 3.0], [0.0, 1.0]], [0, 0, 1]) == pytest.approx(1 - 0.25 / 0.375)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(METRICS), st.floats(0.01, 100))
def test_order_names_rotation_and_scale_change_nothing(seed, metric, scale):
    rng = np.random.default_rng(seed)
    x, y = sample(seed)
    order, names = rng.permutation(len(y)), rng.permutation(9)[:4]
    rotation = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    value = class_separation(x, y, metric)
    assert 0 <= value <= 1
    assert class_separation(x[order], names[y][order], metric) == pytest.approx(value, abs=1e-12)
    assert class_separation(scale * x @ rotation, y, metric) == pytest.approx(value, abs=1e-10)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_what_each_metric_ignores(seed):
    x, y = sample(seed)
    lengths = np.random.default_rng(seed).uniform(0.1, 10, (len(x), 1))
    assert class_separation(lengths * x, y) == pytest.approx(class_separation(x, y), abs=1e-10)
    for metric in ("euclidean", "centered_cosine"):
        assert class_separation(x + 7, y, metric) == pytest.approx(class_separation(x, y, metric), abs=1e-10)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert class_separation(unit, y, "euclidean") == pytest.approx(class_separation(x, y), abs=1e-10)


@pytest.mark.parametrize("metric", METRICS)
def test_classes_count_the_same_whatever_their_size(metric):
    x, y = sample(3, width=3)
    x -= x.mean(axis=0)
    doubled = np.concatenate([x, x[y == 2]]), np.concatenate([y, y[y == 2]])
    if metric == "centered_cosine":  # whose mean is of samples
        assert class_separation(*doubled, metric) != pytest.approx(class_separation(x, y, metric), rel=1e-3)
    else:
        assert class_separation(*doubled, metric) == pytest.approx(class_separation(x, y, metric))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("cuts", [[5], [1, 2, 9], [15]], ids=str)
def test_batches_are_the_whole(metric, cuts):
    x, y = sample(1)
    separation = ClassSeparation(6, metric, x.mean(axis=0) if metric == "centered_cosine" else None)
    for part, labels in zip(np.split(x, cuts), np.split(y, cuts), strict=True):
        separation.update(part, labels)
    assert separation.compute() == pytest.approx(class_separation(x, y, metric), rel=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_nothing_stands_apart(metric):
    x, y = sample(2)
    assert class_separation(x, np.zeros(len(x), dtype=int), metric) == 0  # one class
    assert class_separation(x[:1], [0], metric) == 0  # one sample
    assert class_separation(np.zeros((16, 3)), y, metric) == 0
    for scale in (1e-7, 1.0, 1e7):
        alike = np.tile(scale * x[0], (16, 1))
        assert class_separation(alike, y, metric) == 0
        assert class_separation(alike[:13].astype(np.float32), y[:13], metric) == 0


def test_one_direction_is_no_separation_by_cosine():
    x, y = sample(2)
    assert class_separation(x[:1] * np.random.default_rng(0).uniform(0.1, 10, (16, 1)), y) == 0


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("rows", [[0], [0, 4], [5, 6, 7]], ids=str)
def test_rows_of_zeros_have_cosine_zero_with_all(metric, rows):
    x, y = sample(4)
    x[rows] = 0
    assert class_separation(x, y, metric) == pytest.approx(slow_separation(x, y, metric), rel=1e-10)


def test_a_row_at_the_mean():
    x = np.array([[1.0, 1.0], [2.0, 1.0], [0.0, 1.0], [1.0, 3.0], [1.0, -1.0]])
    y = np.array([0, 0, 1, 1, 1])
    value = class_separation(x, y, "centered_cosine")
    assert value == pytest.approx(slow_separation(x, y, "centered_cosine"), rel=1e-10)


@pytest.mark.parametrize("metric", METRICS)
def test_a_large_offset_costs_few_digits(metric):
    x, y = sample(5)
    assert class_separation(x + 1e5, y, metric) == pytest.approx(slow_separation(x + 1e5, y, metric), rel=1e-4)
    if metric == "euclidean":
        assert class_separation(x + 1e8, y, metric) == pytest.approx(class_separation(x, y, metric), rel=1e-6)


def test_separated_and_not():
    far, y = sample(6, spread=1e-3)
    near, _ = sample(6, spread=100.0)
    for metric in METRICS:
        assert class_separation(far, y, metric) > 0.99
    assert class_separation(np.tile(near, (20, 1)), np.random.default_rng(0).integers(0, 4, 320)) < 0.1


def test_kinds_and_precision():
    x, y = sample(7)
    value = class_separation(torch.tensor(x), torch.tensor(y))
    assert isinstance(value, torch.Tensor) and value.dim() == 0 and value.dtype == torch.float64
    assert isinstance(class_separation(x, y), float)
    half = torch.tensor(x).bfloat16()
    for metric in METRICS:
        assert class_separation(half, y, metric) == pytest.approx(slow_separation(half.double(), y, metric), rel=1e-10)
    assert class_separation(np.eye(4, dtype=np.int64), [0, 0, 1, 1]) == pytest.approx(1 - 0.5 / 0.75)
    separation = ClassSeparation(4)
    separation.update(torch.tensor(x), torch.tensor(y))
    assert isinstance(separation.compute(), torch.Tensor)


def test_the_input_is_left_as_it_was():
    x, y = sample(8)
    for metric in METRICS:
        before = torch.tensor(x)
        class_separation(before, y, metric)
        assert torch.equal(before, torch.tensor(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: class_separation([[1.0]], [0], "manhattan"), "metric must be one of 'cosine'"),
        (lambda: class_separation([[1.0], [math.nan]], [0, 1]), "not finite in 1 of 2 rows"),
        (lambda: class_separation([[1.0], [math.inf]], [0, 1], "centered_cosine"), "not finite in 1 of 2 rows"),
        (lambda: class_separation([1.0, 2.0], [0, 1]), r"shape \(N, d\)"),
        (lambda: class_separation(np.zeros((0, 3)), []), r"shape \(N, d\)"),
        (lambda: class_separation([[1.0], [2.0]], [0]), "2 samples and 1 labels"),
        (lambda: class_separation([[1.0], [2.0]], [0, -1]), "class -1"),
        (lambda: class_separation([[1.0], [2.0]], [0.0, 1.0]), "whole numbers"),
        (lambda: ClassSeparation(0), "num_classes must be"),
        (lambda: ClassSeparation(2, "centered_cosine"), "needs the mean of all features"),
        (lambda: ClassSeparation(2, "cosine", [0.0]), "takes no mean"),
        (lambda: ClassSeparation(2).compute(), "call update first"),
        (lambda: ClassSeparation(2).update([[1.0]], [2]), "class 2; with 2 classes"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_batches_of_unlike_width():
    separation = ClassSeparation(2)
    separation.update([[1.0, 2.0]], [0])
    with pytest.raises(ValueError, match="earlier batches had 2 features, this one has 3"):
        separation.update([[1.0, 2.0, 3.0]], [0])
