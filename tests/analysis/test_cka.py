import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from equipoise.analysis import MinibatchCKA, cka_matrix, gram_matrix, linear_cka
from equipoise.analysis.representations import _rows


@pytest.fixture(params=[16, _rows.VALUES], ids=["small pieces", "one piece"])
def pieces(request, monkeypatch):
    monkeypatch.setattr(_rows, "VALUES", request.param)


def slow_hsic(x, y, debiased):
    """From the N × N kernels of the papers: HKH and HLH, or zero diagonals and U-centring entry by entry."""
    kernels = x @ x.T, y @ y.T
    if debiased:
        return np.prod([slow_u_centred(k) for k in kernels], axis=0).sum()
    h = np.eye(len(x)) - 1 / len(x)
    return np.prod([h @ k @ h for k in kernels], axis=0).sum()


def slow_u_centred(kernel):
    k = kernel - np.diag(np.diag(kernel))
    n = len(k)
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                result[i, j] = k[i, j] - k[i].sum() / (n - 2) - k[:, j].sum() / (n - 2) + k.sum() / ((n - 1) * (n - 2))
    return result


def slow_cka(x, y, debiased=False):
    x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
    own = slow_hsic(x, x, debiased) * slow_hsic(y, y, debiased)
    return slow_hsic(x, y, debiased) / math.sqrt(own)


def sample(n, *widths, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((n, 3))
    return [base @ rng.standard_normal((3, d)) + rng.standard_normal((n, d)) + 5 for d in widths]


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("widths", [(3, 5), (40, 3), (3, 40), (40, 50)], ids=str)  # of 20 samples: 40 > N > 3
def test_all_ways_to_a_product_match_the_kernels(widths, debiased, pieces):
    x, y = sample(20, *widths)
    assert linear_cka(x, y, debiased) == pytest.approx(slow_cka(x, y, debiased), rel=1e-10)


@pytest.mark.parametrize("debiased", [False, True])
def test_matrix_of_layers(debiased):
    xs, ys = sample(17, 3, 30, 4), sample(17, 20, 2, seed=1)
    slow = [[slow_cka(x, y, debiased) for y in ys] for x in xs]
    np.testing.assert_allclose(cka_matrix(xs, ys, debiased), slow, rtol=1e-10)
    slow = [[slow_cka(x, y, debiased) for y in xs] for x in xs]
    np.testing.assert_allclose(cka_matrix(xs, debiased=debiased), slow, rtol=1e-10)


def test_by_hand():
    # centred x = (-1, 0, 1), y = (1, -2, 1): xᵀy = 0
    assert linear_cka([[0.0], [1.0], [2.0]], [[1.0], [-2.0], [1.0]]) == pytest.approx(0, abs=1e-15)
    # centred y = (-1, -1, 2) / 3: (⅓ + ⅔)² / (2 · 6/9) = ¾
    assert linear_cka([[0.0], [1.0], [2.0]], [[0.0], [0.0], [1.0]]) == pytest.approx(0.75)


def test_one_hot_labels_of_digits():
    """Pixels against labels: more than nothing, less than all, and close to its debiased self at N >> d."""
    digits = load_digits()
    x, y = digits.data[:400], np.eye(10)[digits.target[:400]]
    plain, debiased = linear_cka(x, y), linear_cka(x, y, debiased=True)
    assert plain == pytest.approx(slow_cka(x, y), rel=1e-10)
    assert 0.2 < debiased < plain < 0.8


def test_debiased_of_unrelated_features_is_near_zero():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((50, 400)), rng.standard_normal((50, 400))
    assert linear_cka(x, y) > 0.8  # the bias
    assert abs(linear_cka(x, y, debiased=True)) < 0.05


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.booleans(), st.floats(0.01, 100), st.floats(-50, 50), st.sampled_from([4, 9, 30]))
def test_rotation_scale_shift_and_order_change_nothing(seed, debiased, scale, shift, width):
    rng = np.random.default_rng(seed)
    x, y = sample(15, width, 6, seed=seed)
    rotation = np.linalg.qr(rng.standard_normal((width, width)))[0]
    order = rng.permutation(15)
    moved = linear_cka((scale * x @ rotation + shift)[order], y[order], debiased)
    value = linear_cka(x, y, debiased)
    assert moved == pytest.approx(value, abs=1e-9)
    assert linear_cka(y, x, debiased) == pytest.approx(value, abs=1e-12)
    assert value <= 1 + 1e-12
    assert debiased or value >= 0
    assert linear_cka(x, x, debiased) == pytest.approx(1)


def test_a_large_offset_costs_no_digits():
    x, y = sample(30, 4, 5)
    assert linear_cka(x + 1e6, y - 1e6, debiased=True) == pytest.approx(linear_cka(x, y, debiased=True), rel=1e-7)


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("width", [3, 40])
def test_constant_representations_have_no_similarity(width, debiased, pieces):
    (x,) = sample(20, 5)
    constant = np.tile(np.random.default_rng(0).standard_normal(width), (20, 1))
    assert math.isnan(linear_cka(x, constant, debiased))
    matrix = cka_matrix([x, constant], debiased=debiased)
    assert np.isnan(matrix).tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize("width", [1, 30])
def test_one_odd_row_has_no_debiased_similarity(width):
    """Off the diagonal its centred kernel is 0, so its self term is rounding, above 0 as often as below."""
    (x,) = sample(12, 5)
    for seed in range(20):
        usual, odd = np.random.default_rng(seed).standard_normal((2, width))
        spike = np.tile(usual, (12, 1))
        spike[seed % 12] = odd
        assert math.isnan(linear_cka(x, spike, debiased=True))
        assert math.isnan(linear_cka(spike, x, debiased=True))
        assert not math.isnan(linear_cka(x, spike))


def slow_minibatch(x, y, cuts):
    hsic = {
        name: sum(slow_hsic(a[i:j], b[i:j], True) for i, j in itertools.pairwise(cuts) if j - i > 3)
        for name, (a, b) in {"xy": (x, y), "xx": (x, x), "yy": (y, y)}.items()
    }
    return hsic["xy"] / math.sqrt(hsic["xx"] * hsic["yy"])


@pytest.mark.parametrize("cuts", [[0, 10, 20, 30], [0, 12, 24, 30], [0, 13, 26, 30], [0, 14, 28, 30], [0, 30]], ids=str)
def test_minibatches_match_loops(cuts):
    xs, ys = sample(30, 3, 40), sample(30, 5, 20, 2, seed=1)
    cka, own = MinibatchCKA(), MinibatchCKA()
    for i, j in itertools.pairwise(cuts):
        cka.update([x[i:j] for x in xs], [y[i:j] for y in ys])
        own.update([x[i:j] for x in xs])
    slow = [[slow_minibatch(x, y, cuts) for y in ys] for x in xs]
    np.testing.assert_allclose(cka.compute(), slow, rtol=1e-9)
    slow = [[slow_minibatch(x, y, cuts) for y in xs] for x in xs]
    np.testing.assert_allclose(own.compute(), slow, rtol=1e-9)


def test_one_minibatch_is_the_debiased_cka():
    xs = sample(25, 3, 40)
    cka = MinibatchCKA()
    cka.update(xs)
    np.testing.assert_allclose(cka.compute(), cka_matrix(xs, debiased=True), rtol=1e-10)


def test_gram_matrices_tell_all_that_it_needs():
    rng = np.random.default_rng(0)
    layers = [rng.normal(size=(20, 3, 4, 4)), rng.normal(size=(20, 5))]
    by_rows, by_grams = MinibatchCKA(), MinibatchCKA()
    for batch in (slice(0, 8), slice(8, 17), slice(17, 20)):  # the last is too small to count
        by_rows.update([x[batch] for x in layers])
        grams = []
        for x in layers:
            flat = x[batch].reshape(len(x[batch]), -1)
            flat = flat - flat.mean(axis=0)
            np.testing.assert_allclose(gram_matrix(x[batch]), flat @ flat.T, atol=1e-12)
            grams.append(torch.from_numpy(flat @ flat.T))
        by_grams.update_grams(grams)
    np.testing.assert_allclose(by_grams.compute(), by_rows.compute(), rtol=1e-10)


def test_minibatch_guards():
    cka = MinibatchCKA()
    cka.update([np.eye(3)])
    with pytest.raises(ValueError, match="no batch of at least 4 samples"):
        cka.compute()
    cka.update([np.full((8, 2), 0.1), *sample(8, 3)])
    assert np.isnan(cka.compute()).tolist() == [[True, True], [True, False]]
    with pytest.raises(ValueError, match="earlier batches compared 2 × 2 representations, this one 1 × 1"):
        cka.update(sample(8, 3))


def test_kinds_maps_and_precision():
    x, y = (torch.tensor(z) for z in sample(20, 12, 6))
    value = linear_cka(x.reshape(20, 3, 2, 2), y.requires_grad_())
    assert isinstance(value, torch.Tensor) and value.dtype == torch.float64 and value.dim() == 0
    assert not value.requires_grad
    assert isinstance(linear_cka(x.numpy(), y.detach().numpy()), float)
    assert isinstance(cka_matrix([x.numpy()]), np.ndarray)
    assert isinstance(cka_matrix([x.numpy()], [y]), torch.Tensor)
    assert linear_cka(x.bfloat16(), y) == pytest.approx(slow_cka(x.bfloat16().double().numpy(), y.detach().numpy()))
    cka = MinibatchCKA()
    cka.update([x])
    assert isinstance(cka.compute(), torch.Tensor)


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e18, 1e-18])
def test_many_samples_in_single_precision_keep_seven_digits(debiased, scale):
    x, y = (torch.tensor(z, dtype=torch.float32) for z in sample(5000, 40, 30))
    other = torch.randn(5000, 20, generator=torch.Generator().manual_seed(0)) + 100  # unrelated, and far from 0
    for a, b in ((x, y), (x, x), (x, other), (y.half(), other)):
        precise = float(linear_cka(a.double(), b.double(), debiased))
        found = linear_cka(a * scale if a.dtype == torch.float32 else a, b, debiased)
        assert float(found) == pytest.approx(precise, abs=1e-7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_cka(np.eye(3), np.eye(4)), "same samples in the same order, not of 3, 4 samples"),
        (lambda: linear_cka(np.eye(3), np.eye(3), debiased=True), "at least 4 samples, not 3"),
        (lambda: linear_cka([[1.0], [math.nan]], [[1.0], [2.0]]), "not finite in 1 of 2 rows"),
        (lambda: linear_cka([1.0, 2.0], [[1.0], [2.0]]), r"shape \(N, d\)"),
        (lambda: cka_matrix([]), "at least one representation"),
        (lambda: cka_matrix([np.eye(3)], []), "at least one representation"),
        (lambda: MinibatchCKA().compute(), "call update first"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
