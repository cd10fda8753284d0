import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from equipoise.analysis import cross_entropy_gradients, feature_deviation, feature_gradient_norms
from equipoise.analysis.representations import _rows
from equipoise.analysis.representations.deviation import subsample_means


def unit(x):
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def slow_deviation(train, y, test, z, num_classes):
    """The mean over every subset of K training samples, to which the mean over rounds tends."""
    smallest = min(np.bincount(y)[np.unique(y)])
    result = []
    for c in range(num_classes):
        subsets = itertools.combinations(unit(train[y == c]), smallest)
        mean = unit(test[z == c]).mean(axis=0)
        result.append(np.mean([np.linalg.norm(np.mean(s, axis=0) - mean) for s in subsets]))
    return np.array(result)


def sample(counts, seed=0, width=4):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    order = rng.permutation(len(y))
    return rng.standard_normal((len(y), width))[order] + 0.3, y[order]


@pytest.mark.parametrize("values", [100, _rows.VALUES], ids=["small pieces", "one piece"])
def test_tends_to_the_mean_over_all_subsets(values, monkeypatch):
    monkeypatch.setattr(_rows, "VALUES", values)
    (train, y), (test, z) = sample([9, 6, 3]), sample([4, 5, 6], seed=1)
    slow = slow_deviation(train, y, test, z, 3)
    found = feature_deviation(train, y, test, z, rounds=20_000)
    # a round's distance spreads by about 0.2, so the mean of 20,000 by 0.0015; with replacement it would be 0.05 off
    np.testing.assert_allclose(found, slow, atol=0.006)
    assert found[2] == pytest.approx(slow[2], abs=1e-12)  # of the smallest class there is one subset


def test_classes_of_one_size_need_no_luck():
    (train, y), (test, z) = sample([7, 7]), sample([4, 5], seed=1)
    slow = [np.linalg.norm(unit(train[y == c]).mean(0) - unit(test[z == c]).mean(0)) for c in (0, 1)]
    np.testing.assert_allclose(feature_deviation(train, y, test, z, rounds=3), slow, rtol=1e-12)


@pytest.mark.parametrize("values", [70, _rows.VALUES])
def test_draws_are_without_replacement_and_all_alike(values, monkeypatch):
    monkeypatch.setattr(_rows, "VALUES", values)
    shares = subsample_means(torch.eye(12, dtype=torch.float64), 5, 4000, torch.Generator().manual_seed(0))
    assert shares.shape == (4000, 12)
    assert ((shares > 0).sum(dim=1) == 5).all()
    assert shares[shares > 0].unique().tolist() == pytest.approx([1 / 5])
    # each row is in 5/12 of the draws, each pair in 5 · 4 / (12 · 11); five standard errors
    chosen = (shares > 0).double()
    together = chosen.T @ chosen / 4000
    np.testing.assert_allclose(together.diagonal(), 5 / 12, atol=5 * 0.0078)
    np.testing.assert_allclose(together[~torch.eye(12, dtype=torch.bool)], 20 / 132, atol=5 * 0.0057)


def test_seeds():
    (train, y), (test, z) = sample([30, 5]), sample([4, 5], seed=1)
    first = feature_deviation(train, y, test, z, rounds=20)
    np.testing.assert_array_equal(feature_deviation(train, y, test, z, rounds=20), first)
    assert feature_deviation(train, y, test, z, rounds=20, seed=1)[0] != first[0]


def test_classes_that_are_absent():
    (train, y), (test, z) = sample([6, 0, 3, 4]), sample([3, 3, 0, 3, 2], seed=1)
    found = feature_deviation(train, y, test, z, rounds=5)
    assert np.isnan(found).tolist() == [False, True, True, False, True]


def test_length_does_not_matter_and_zeros_stay():
    (train, y), (test, z) = sample([6, 3]), sample([3, 3], seed=1)
    lengths = np.random.default_rng(0).uniform(0.1, 9, (9, 1))
    found = feature_deviation(train, y, test, z, rounds=9)
    np.testing.assert_allclose(feature_deviation(lengths * train, y, 3 * test, z, rounds=9), found)
    assert feature_deviation([[0.0, 0.0]], [0], [[0.0, 5.0]], [0])[0] == 1
    np.testing.assert_allclose(feature_deviation(train, y, train, y, rounds=5)[1], 0, atol=1e-12)


def test_a_rare_digit_does_not_deviate_for_being_rare():
    """Pixels are not trained, so 20 threes against 90 of the others should not stand out; by plain means they do."""
    x, y = load_digits(return_X_y=True)
    half = np.arange(len(y)) % 2 == 0
    train, test = half & ((y != 3) | (np.cumsum(half & (y == 3)) <= 20)), ~half
    found = feature_deviation(x[train], y[train], x[test], y[test])
    plain = [np.linalg.norm(unit(x[train & (y == c)]).mean(0) - unit(x[test & (y == c)]).mean(0)) for c in range(10)]
    assert plain[3] > np.median(plain)
    assert found[3] < np.median(found)
    assert found[3] == pytest.approx(plain[3])


def slow_norms(gradients, labels, num_classes):
    means = []
    for c in range(num_classes):
        norms = [math.sqrt(sum(v * v for v in g.flatten())) for g, k in zip(gradients, labels, strict=True) if k == c]
        means.append(sum(norms) / len(norms) if norms else math.nan)
    return means


def test_gradient_norms_match_loops():
    rng = np.random.default_rng(0)
    gradients, labels = rng.standard_normal((20, 2, 3, 3)), rng.choice([0, 1, 3], 20)
    found = feature_gradient_norms(gradients, labels, 5)
    np.testing.assert_allclose(found, slow_norms(gradients, labels, 5))
    assert np.isnan(found).tolist() == [False, False, True, False, True]


def test_gradients_match_autograd():
    x, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in [(9, 5), (4, 5), (4,)])
    labels = torch.randint(4, (9,))
    x.requires_grad_()
    logits = x @ weight.T + bias
    F.cross_entropy(logits, labels, reduction="sum").backward()
    found = cross_entropy_gradients(logits, labels, weight)
    torch.testing.assert_close(found, x.grad, rtol=1e-10, atol=1e-12)
    assert not found.requires_grad


def test_gradients_of_extreme_logits():
    found = cross_entropy_gradients([[1e4, -1e4], [1e4, -1e4]], [0, 1], [[1.0], [3.0]])
    np.testing.assert_allclose(found, [[0.0], [-2.0]], atol=1e-12)


def test_kinds_and_precision():
    (train, y), (test, z) = sample([6, 3]), sample([3, 3], seed=1)
    half = torch.tensor(train).bfloat16()
    found = feature_deviation(half, y, torch.tensor(test), z, rounds=7)
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float64
    np.testing.assert_array_equal(found, feature_deviation(half.double().numpy(), y, test, z, rounds=7))
    assert isinstance(feature_gradient_norms(torch.tensor(train), y, 2), torch.Tensor)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: feature_deviation([[1.0]], [0], [[1.0]], [0], rounds=0), "rounds must be"),
        (lambda: feature_deviation([[1.0]], [0], [[1.0, 2.0]], [0]), "width 1 and test_features 2"),
        (lambda: feature_deviation([[math.nan]], [0], [[1.0]], [0]), "train_features are not finite"),
        (lambda: feature_deviation([[1.0]], [0], [[math.inf]], [0]), "test_features are not finite"),
        (lambda: feature_deviation([[1.0]], [-1], [[1.0]], [0]), "class -1"),
        (lambda: feature_gradient_norms([[1.0]], [2], 2), "class 2; with 2 classes"),
        (lambda: feature_gradient_norms([[1.0]], [0], 0), "num_classes must be"),
        (lambda: feature_gradient_norms([[math.nan]], [0], 1), "gradients are not finite"),
        (lambda: cross_entropy_gradients([[1.0, 2.0]], [0], [[1.0]]), "logits are of 2 classes and weight of 1"),
        (lambda: cross_entropy_gradients([[1.0, 2.0]], [2], [[1.0], [1.0]]), "class 2; with 2 classes"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
