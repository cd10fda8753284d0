import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from equipoise.analysis import class_centroids, singular_values
from equipoise.analysis.representations import _rows


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("shape", [(5, 40), (12, 12), (200, 3), (30, 7), (1, 4), (4, 1)], ids=str)
def test_matches_numpy(shape, centered, monkeypatch):
    monkeypatch.setattr(_rows, "VALUES", 64)
    x = np.random.default_rng(0).standard_normal(shape) + 3
    slow = np.linalg.svd(x - x.mean(axis=0) if centered else x, compute_uv=False)
    np.testing.assert_allclose(singular_values(x, centered), slow, rtol=1e-9, atol=1e-12)
    if slow[0] > 0:
        np.testing.assert_allclose(singular_values(x, centered, scaled=True), slow / slow[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("least", [1e-3, 1e-6, 1e-9, 1e-13])
def test_small_values_of_many_rows_keep_their_digits(least):
    """Singular values down to `least`, made of known factors; squares alone would lose all below 1e-8."""
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.standard_normal((500, 6)))[0], np.linalg.qr(rng.standard_normal((6, 6)))[0]
    true = np.geomspace(1, least, 6)
    found = singular_values(u * true @ v.T)
    np.testing.assert_allclose(found, true, rtol=1e-5, atol=3e-16)
    np.testing.assert_allclose(found[0], 1, rtol=1e-12)


def test_dead_features_have_value_zero():
    x = np.random.default_rng(0).standard_normal((100, 5))
    x[:, 3] = 0
    found = singular_values(x)
    assert found[-1] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found[:4], np.linalg.svd(np.delete(x, 3, axis=1), compute_uv=False))


def test_constant_features():
    np.testing.assert_array_equal(singular_values(np.full((60, 3), 0.1), centered=True, scaled=True), np.zeros(3))
    np.testing.assert_array_equal(singular_values(np.full((4, 3), 0.1), centered=True), np.zeros(3))
    assert singular_values(np.full((60, 3), 0.1))[0] == pytest.approx(0.1 * math.sqrt(180))


def test_squares_sum_to_the_squares_of_the_matrix():
    digits = load_digits()
    values = singular_values(digits.images)  # (1797, 8, 8), some pixels always 0
    assert len(values) == 64
    assert (values**2).sum() == pytest.approx((digits.data**2).sum())
    assert (np.diff(values) <= 0).all()


def test_centroids_match_loops():
    digits = load_digits()
    keep = digits.target != 4
    x, y = digits.images[keep][:300], digits.target[keep][:300]
    slow = [x[y == c].reshape(-1, 64).mean(axis=0) for c in (0, 1, 2, 3, 5, 6, 7, 8, 9)]
    np.testing.assert_allclose(class_centroids(x, y), slow)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_allclose(class_centroids(x[order], y[order]), slow)


def test_kinds_and_precision():
    x = torch.randn(50, 4)
    assert isinstance(singular_values(x), torch.Tensor)
    half = x.bfloat16()
    np.testing.assert_allclose(singular_values(half), np.linalg.svd(half.double().numpy(), compute_uv=False))
    assert class_centroids(half, torch.zeros(50, dtype=torch.int32)).dtype == torch.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: singular_values([[1.0, math.nan]]), "x are not finite in 1 of 1 rows"),
        (lambda: singular_values([1.0]), r"x must have shape \(N, d\)"),
        (lambda: class_centroids([[1.0]], [0, 1]), "1 samples and 2 labels"),
        (lambda: class_centroids([[1.0]], [-1]), "class -1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
