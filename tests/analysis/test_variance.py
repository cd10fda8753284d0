import math

import numpy as np
import pytest
import torch

from equipoise.analysis import nested_variance, variance_split


def slow_nested(x):
    """The two sums of squares with loops."""
    subsets, seeds = len(x), len(x[0])
    means = [sum(row) / seeds for row in x]
    within = sum((v - m) ** 2 for row, m in zip(x, means, strict=True) for v in row) / (subsets * (seeds - 1))
    between = sum((m - sum(means) / subsets) ** 2 for m in means) / (subsets - 1)
    return within, max(0.0, between - within / seeds)


def slow_split(x):
    """The model's estimators with loops; x[d][s][i] is 0 or 1."""
    subsets, seeds, n = x.shape
    accuracy = [[x[d, s].sum() / n for s in range(seeds)] for d in range(subsets)]
    e = u = 0.0
    for d in range(subsets):
        for i in range(n):
            for s in range(seeds):
                e += (x[d, s, i] - x[d, :, i].mean() - x[d, s].mean() + x[d].mean()) ** 2
            u += (x[d, :, i].mean() - x[d].mean() - x[:, :, i].mean() + x.mean()) ** 2
    e /= subsets * (seeds - 1) * (n - 1)
    u /= (subsets - 1) * (n - 1)
    within = sum(np.var(row, ddof=1) for row in accuracy) / subsets
    seed = within - e / n
    subset = np.var([np.mean(row) for row in accuracy], ddof=1) - u / n - seed / seeds
    test = np.mean([a * (1 - a) for row in accuracy for a in row]) / (n - 1)
    return max(seed, 0), max(subset, 0), test


@pytest.mark.parametrize("seed", range(4))
def test_against_loops(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(rng.normal(0, 1, 4)[:, None], 0.5, (4, 3))
    assert nested_variance(scores) == pytest.approx(slow_nested(scores.tolist()))
    right = rng.random((4, 3, 30)) < rng.uniform(0.2, 0.95, (4, 3, 1))
    assert variance_split(right) == pytest.approx(slow_split(right.astype(float)), abs=1e-15)


def test_by_hand():
    # within: each pair has variance 2; between: means 2 and 6 have variance 8, less 2 / 2
    assert nested_variance([[1.0, 3.0], [5.0, 7.0]]) == (2.0, 7.0)
    assert nested_variance([[1.0, 3.0], [1.0, 3.0]]) == (2.0, 0.0)  # below 0 is given as 0


def drawn(rng, subsets, seeds, n, sd_subset, sd_seed):
    """Networks with true accuracies of known variances, on samples of unlike difficulty."""
    level = 1.0 + sd_subset * rng.normal(size=(subsets, 1, 1)) + sd_seed * rng.normal(size=(subsets, seeds, 1))
    return rng.random((subsets, seeds, n)) < 1 / (1 + np.exp(-(level + rng.normal(0, 2, n))))


def test_it_finds_the_variances_it_was_given():
    """Mean over studies: the true variance of accuracy is that of the same networks on a huge test set."""
    rng = np.random.default_rng(0)
    small = np.mean([variance_split(drawn(rng, 8, 6, 400, 0.3, 0.2)) for _ in range(150)], axis=0)
    truth = np.mean([nested_variance(drawn(rng, 40, 10, 20_000, 0.3, 0.2).mean(axis=2)) for _ in range(4)], axis=0)
    assert small[:2] == pytest.approx(truth, rel=0.15)
    assert small[2] == pytest.approx(0.225 / 400, rel=0.1)  # accuracy about 0.66


def test_the_luck_of_the_test_set_is_no_variance_of_seeds():
    rng = np.random.default_rng(1)
    same = [drawn(rng, 5, 6, 200, 0.0, 0.0) for _ in range(40)]
    naive = np.mean([nested_variance(x.mean(axis=2)).seed for x in same])
    split = np.mean([variance_split(x).seed for x in same])
    assert split < 0.35 * naive  # 0 but for estimates below 0, which are given as 0


def test_what_cannot_be_told_is_nan():
    one_seed = nested_variance([[0.1], [0.2]])
    assert np.isnan(one_seed).all()
    one_subset = nested_variance([[0.1, 0.3]])
    assert one_subset.seed == pytest.approx(0.02)
    assert math.isnan(one_subset.subset)
    right = np.random.default_rng(0).random((3, 4, 20)) < 0.5
    assert [math.isnan(v) for v in variance_split(right[:, :1])] == [True, True, False]
    assert [math.isnan(v) for v in variance_split(right[:1])] == [False, True, False]
    assert all(math.isnan(v) for v in variance_split(right[:, :, :1]))


def test_networks_that_are_all_alike():
    right = np.broadcast_to(np.arange(10) < 8, (3, 4, 10))
    assert variance_split(right) == pytest.approx((0, 0, 0.8 * 0.2 / 9))


def test_arrays_are_answered_in_their_kind():
    right = torch.rand(3, 4, 20) < 0.5
    assert all(isinstance(v, torch.Tensor) for v in variance_split(right))
    assert all(type(v) is float for v in variance_split(right.numpy()))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nested_variance([0.1, 0.2]), r"shape \(subsets, seeds\)"),
        (lambda: nested_variance([[0.1, math.nan]]), "finite"),
        (lambda: variance_split([[True, False]]), r"shape \(subsets, seeds, N\)"),
        (lambda: variance_split([[[0.5, 1.0]]]), "true or false"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
