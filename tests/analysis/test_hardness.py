import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.analysis import angular_visual_hardness
from equipoise.analysis.representations import _rows


def slow_angle(x, w):
    size = np.linalg.norm(x) * np.linalg.norm(w)
    return math.acos(min(1, max(-1, x @ w / size))) if size > 0 else math.pi / 2


def slow_hardness(features, weight, labels):
    return [
        slow_angle(x, weight[y]) / sum(slow_angle(x, w) for w in weight) for x, y in zip(features, labels, strict=True)
    ]


def sample(seed, n=13, classes=5, width=4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, width)), rng.standard_normal((classes, width)), rng.integers(0, classes, n)


@pytest.mark.parametrize("values", [8, _rows.VALUES], ids=["small pieces", "one piece"])
def test_matches_loops(values, monkeypatch):
    monkeypatch.setattr(_rows, "VALUES", values)
    x, w, y = sample(0)
    found = angular_visual_hardness(x, w, y)
    assert found.shape == (13,)  # not (13, 13), the trap of a public version
    np.testing.assert_allclose(found, slow_hardness(x, w, y), rtol=1e-9)


def test_by_hand():
    # 45° to the first weight, 45° to the second, 135° to the third
    w = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    assert angular_visual_hardness([[2.0, 2.0]], w, [0]) == pytest.approx(1 / 5)
    assert angular_visual_hardness([[2.0, 2.0]], w, [2]) == pytest.approx(3 / 5)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_lengths_do_not_matter_and_classes_share_one(seed, scale):
    x, w, _ = sample(seed)
    shares = np.stack([angular_visual_hardness(x, w, np.full(len(x), c)) for c in range(5)])
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    lengths = np.random.default_rng(seed).uniform(0.1, 10, (5, 1))
    scaled = angular_visual_hardness(scale * x, lengths * w, np.zeros(len(x), dtype=int))
    np.testing.assert_allclose(scaled, shares[0], rtol=1e-7)


def test_zeros_are_at_a_right_angle_to_all():
    x, w, y = sample(1)
    x[0], w[1] = 0, 0
    found = angular_visual_hardness(x, w, y)
    assert found[0] == pytest.approx(1 / 5)
    np.testing.assert_allclose(found, slow_hardness(x, w, y), rtol=1e-9)


def test_weights_of_one_direction():
    """With rounding some of the three angles would be 0 and others 1e-8."""
    directions = np.random.default_rng(0).standard_normal((50, 4))
    found = [angular_visual_hardness([3.3 * v], np.outer([1.0, 2.0, 7.0], v), [2]).item() for v in directions]
    assert found == pytest.approx([1 / 3] * 50)


def test_one_class():
    found = angular_visual_hardness([[1.0, 2.0], [3.0, 1.0], [0.0, 0.0]], [[3.0, 1.0]], [0, 0, 0])
    assert found == pytest.approx(1)


def test_kinds_and_precision():
    x, w, y = sample(2)
    found = angular_visual_hardness(torch.tensor(x), w, y)
    assert isinstance(found, torch.Tensor)
    half = torch.tensor(x).bfloat16()
    np.testing.assert_allclose(angular_visual_hardness(half, w, y), slow_hardness(half.double().numpy(), w, y))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: angular_visual_hardness([[1.0, 2.0]], [[1.0]], [0]), "features have width 2 and weight 1"),
        (lambda: angular_visual_hardness([[1.0]], [[1.0]], [1]), "class 1; with 1 classes"),
        (lambda: angular_visual_hardness([[math.nan]], [[1.0]], [0]), "features are not finite"),
        (lambda: angular_visual_hardness([[1.0]], [[math.inf]], [0]), "weight are not finite"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
