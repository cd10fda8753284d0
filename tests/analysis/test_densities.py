import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import gaussian_kde

from equipoise.analysis import cosine_distances, kernel_density
from equipoise.analysis.representations import _rows


def slow_histogram(features, labels, bins):
    """Pairs of one class and of two classes in each bin, pair by pair."""
    counts = np.zeros((2, bins), dtype=int)
    for i, j in itertools.combinations(range(len(features)), 2):
        size = np.linalg.norm(features[i]) * np.linalg.norm(features[j])
        distance = 1 - (features[i] @ features[j] / size if size > 0 else 0.0)
        counts[int(labels[i] != labels[j]), min(bins - 1, int(distance / 2 * bins))] += 1
    return counts


def sample(seed, n=40, width=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, width)), rng.integers(0, 4, n)


@pytest.mark.parametrize("values", [100, _rows.VALUES], ids=["small pieces", "one piece"])
@pytest.mark.parametrize("bins", [1, 7, 200])
def test_matches_pairs(bins, values, monkeypatch):
    monkeypatch.setattr(_rows, "VALUES", values)
    x, y = sample(0)
    x[5] = 0
    within, between = slow_histogram(x, y, bins)
    found = cosine_distances(x, y, bins)
    assert (found.samples, found.pairs_within, found.pairs_between) == (40, within.sum(), between.sum())
    np.testing.assert_allclose(found.within, within / within.sum() * bins / 2)
    np.testing.assert_allclose(found.between, between / between.sum() * bins / 2)
    np.testing.assert_allclose(found.edges, [2 * b / bins for b in range(bins + 1)])
    np.testing.assert_allclose(found.centers, [(2 * b + 1) / bins for b in range(bins)])


def test_the_ends():
    found = cosine_distances([[1.0], [3.0], [-2.0]], [0, 0, 0], bins=4)  # distances 0, 2, 2
    np.testing.assert_allclose(found.within, [2 / 3, 0, 0, 4 / 3])
    assert np.isnan(found.between).all()  # no pair of two classes
    assert found.pairs_between == 0


def test_a_sample_of_many_is_seeded():
    x, y = sample(1, n=60)
    first, again = cosine_distances(x, y, 10, samples=30), cosine_distances(x, y, 10, samples=30)
    other = cosine_distances(x, y, 10, samples=30, seed=1)
    np.testing.assert_array_equal(first.between, again.between)
    assert (first.between != other.between).any()
    assert first.samples == 30 and first.pairs_within + first.pairs_between == 30 * 29 / 2
    assert cosine_distances(x, y, 10, samples=60).samples == 60


def test_density_matches_scipy():
    values, at = np.random.default_rng(0).gamma(2.0, size=50), np.linspace(-1, 8, 23)
    bandwidth = 0.3
    slow = gaussian_kde(values, bw_method=bandwidth / values.std(ddof=1))(at)
    np.testing.assert_allclose(kernel_density(values, at, bandwidth), slow, rtol=1e-9)


def test_density_in_pieces_with_weights(monkeypatch):
    values, at = np.random.default_rng(0).standard_normal(50), np.linspace(-3, 3, 9)
    weights = np.random.default_rng(1).integers(0, 4, 50)
    repeated = kernel_density(np.repeat(values, weights), at, 0.2)
    monkeypatch.setattr(_rows, "VALUES", 60)
    np.testing.assert_allclose(kernel_density(values, at, 0.2, weights), repeated)


def test_smoothed_bins_are_close_to_the_density_of_the_pairs():
    x, y = sample(2)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    pairs = [1 - unit[i] @ unit[j] for i, j in itertools.combinations(range(40), 2) if y[i] == y[j]]
    found, at = cosine_distances(x, y, bins=2000), np.linspace(0, 2, 11)
    smooth = kernel_density(found.centers, at, 0.1, found.within)
    np.testing.assert_allclose(smooth, kernel_density(pairs, at, 0.1), atol=5e-4)


def test_density_integrates_to_one():
    at = torch.linspace(-1, 2, 3001, dtype=torch.float64)
    density = kernel_density(torch.rand(20), at, 0.05)
    assert isinstance(density, torch.Tensor)
    assert torch.trapezoid(density, at) == pytest.approx(1)


def test_kinds_and_precision():
    x, y = sample(3)
    found = cosine_distances(torch.tensor(x).bfloat16().reshape(40, 3, 1, 1), torch.tensor(y), 5)
    assert isinstance(found.within, torch.Tensor) and found.within.dtype == torch.float64
    within, _ = slow_histogram(torch.tensor(x).bfloat16().double().numpy(), y, 5)
    np.testing.assert_allclose(found.within, within / within.sum() * 2.5)
    assert isinstance(cosine_distances(x, y).within, np.ndarray)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cosine_distances([[1.0]], [0], bins=0), "bins must be"),
        (lambda: cosine_distances([[1.0]], [0], samples=1), "samples must be"),
        (lambda: cosine_distances([[math.nan]], [0]), "not finite"),
        (lambda: cosine_distances([[1.0]], [0, 1]), "1 samples and 2 labels"),
        (lambda: kernel_density([1.0], [0.0], 0), "bandwidth must be above 0"),
        (lambda: kernel_density([math.nan], [0.0], 1), "values must be a row of finite numbers"),
        (lambda: kernel_density([], [0.0], 1), "values must be a row of finite numbers"),
        (lambda: kernel_density([1.0], [[0.0]], 1), "at must be a row"),
        (lambda: kernel_density([1.0], [0.0], 1, [-1.0]), "none below 0"),
        (lambda: kernel_density([1.0], [0.0], 1, [0.0]), "not all 0"),
        (lambda: kernel_density([1.0], [0.0], 1, [1.0, 1.0]), "one for each value"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
