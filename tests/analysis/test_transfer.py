"""The linear probe against scikit-learn's exact Newton solver, by hand, and what must not change its answer."""

import math
import warnings

import numpy as np
import pytest
import sklearn
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from equipoise import analysis
from equipoise.analysis.representations import _logistic, transfer

GRID = tuple(10.0**i for i in range(-6, 6))


def digits(classes=10, train=200, valid=100):
    x, y = load_digits(return_X_y=True)
    x, y = x[y < classes], y[y < classes]
    order = np.random.default_rng(0).permutation(len(y))
    first, second = order[:train], order[train : train + valid]
    return x[first], y[first], x[second], y[second]


def slow_objective(x, y, weight, bias, lam):
    """Sample by sample."""
    total = lam * sum(w**2 for w in np.ravel(weight))
    for row, label in zip(x, y, strict=True):
        logits = [float(w @ row + b) for w, b in zip(weight, bias, strict=True)]
        top = max(logits)
        total += top + math.log(sum(math.exp(z - top) for z in logits)) - logits[label]
    return total


def theirs(x, y, lam):
    """scikit-learn's optimum in our terms: weight and bias for each class."""
    two = len(set(y)) == 2
    if not two and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 6):
        pytest.skip("before 1.6 this solver of scikit-learn fits many classes one by one")
    model = LogisticRegression(C=(1 if two else 0.5) / lam, solver="newton-cholesky", tol=1e-13, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its line search gives up at rounding; what counts is here
        model.fit(x, y)
    weight, bias = model.coef_, model.intercept_
    return (np.vstack([-weight, weight]) / 2, np.array([-bias[0], bias[0]]) / 2) if two else (weight, bias)


@pytest.mark.parametrize("lam", [1e-6, 1e-2, 10.0, 1e5])
@pytest.mark.parametrize("classes", [2, 10])
def test_the_optimum_of_scikit_learn(lam, classes):
    train_x, train_y, valid_x, valid_y = digits(classes)
    probe = analysis.linear_probe(train_x, train_y, valid_x, valid_y, lambdas=[lam])
    x, y = np.concatenate([train_x, valid_x]), np.concatenate([train_y, valid_y])
    ours = slow_objective(x, y, probe.weight, probe.bias, lam)
    best = slow_objective(x, y, *theirs(x, y, lam), lam)
    assert ours == pytest.approx(best, rel=1e-6)
    assert probe.gaps.max() <= 1e-6 and probe.lam == lam


def test_every_lambda_of_the_path_is_at_its_optimum(monkeypatch):
    """The fits before the choice too, each found from the ones before."""
    x, y, valid_x, valid_y = digits(5, 200, 50)
    fits = []
    original = transfer._for_given_features
    monkeypatch.setattr(transfer, "_for_given_features", lambda *a: fits.append(original(*a)) or fits[-1])
    probe = analysis.linear_probe(x, y, valid_x, valid_y, lambdas=GRID)
    assert [fit.lam for fit in fits[:-1]] == sorted(GRID, reverse=True)
    assert fits[-1].lam == probe.lam
    for fit in fits[:-1]:
        weight, bias = fit.weight.numpy(), fit.bias.numpy()
        best = slow_objective(x, y, *theirs(x, y, fit.lam), fit.lam)
        assert slow_objective(x, y, weight, bias, fit.lam) == pytest.approx(best, rel=1e-6)
        accuracy = np.mean((valid_x @ weight.T + bias).argmax(1) == valid_y)
        assert probe.accuracies[GRID.index(fit.lam)] == pytest.approx(accuracy, abs=1e-12)


def test_by_hand():
    """Two points at ±1: f(w) = 2 log(1 + e^{-2w}) + 2 λ w², so λ w = σ(-2w), and w = 1 for λ = σ(-2)."""
    lam = 1 / (1 + math.exp(2))
    fit = transfer._samples(torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([0, 1]))
    theta, _, _ = _logistic.minimise(_logistic.Problem(fit.x, fit.y, lam), torch.zeros(2, 2).double(), 1e-11)
    torch.testing.assert_close(theta, torch.tensor([[-1.0, 0.0], [1.0, 0.0]]).double(), atol=1e-5, rtol=0)


def test_constant_features_leave_the_frequencies():
    probe = analysis.linear_probe(np.full((7, 3), 2.5), [0, 0, 0, 0, 1, 1, 2], np.full((1, 3), 2.5), [0], lambdas=[1.0])
    assert np.abs(probe.weight).max() == 0
    odds = np.exp(probe.bias - probe.bias[2])
    np.testing.assert_allclose(odds, [5, 2, 1], rtol=1e-6)  # the validation sample is counted in the refit


def test_the_paper_s_penalties():
    assert len(transfer.LAMBDAS) == 45
    np.testing.assert_allclose(transfer.LAMBDAS, np.logspace(-6, 5, 45), rtol=1e-12)


def test_a_start_is_on_the_parabola_in_log_lambda():
    def theta(lam):
        u = math.log(lam)
        return torch.tensor([[1 + 2 * u - 0.5 * u**2, 3.0 - u]], dtype=torch.float64)

    three = [(lam, theta(lam)) for lam in (10.0, 4.0, 1.5)]
    torch.testing.assert_close(transfer._ahead(three, 0.3), theta(0.3))
    torch.testing.assert_close(transfer._ahead(three[:1], 0.3), theta(10.0))


def test_the_first_start_is_the_minimum_without_weights():
    samples = transfer._samples(torch.randn(10, 3).double(), torch.tensor([0, 0, 0, 0, 0, 0, 0, 1, 1, 3]))
    theta = transfer._without_weights(samples)
    assert theta.shape == (3, 4) and not theta[:, :-1].any()
    torch.testing.assert_close(theta[:, -1].softmax(0), torch.tensor([0.7, 0.2, 0.1]).double())


def test_steps_between_penalties():
    path = transfer._with_steps([1.0, 0.9, 1e-3], top=20.0)
    assert {1.0, 0.9, 1e-3} <= set(path) and path == sorted(path, reverse=True)
    ratios = [high / low for high, low in zip([20.0, *path], path, strict=False)]
    assert max(ratios) <= transfer.STRIDE * (1 + 1e-6)
    assert transfer._with_steps(sorted(transfer.LAMBDAS, reverse=True), top=1.0) == sorted(
        transfer.LAMBDAS, reverse=True
    )


def test_of_equal_accuracies_the_largest_penalty_is_taken():
    x = [[0.0], [1.0], [9.0], [10.0]]
    probe = analysis.linear_probe(x, [0, 0, 1, 1], x, [0, 0, 1, 1], lambdas=[1e-3, 1.0, 1e-1])
    assert probe.lam == 1.0
    np.testing.assert_array_equal(probe.accuracies, 1.0)


def test_order_and_repeats_of_the_penalties_do_not_matter():
    data = digits(3, 60, 30)
    one = analysis.linear_probe(*data, lambdas=[1e-2, 1.0, 1e2])
    other = analysis.linear_probe(*data, lambdas=[1.0, 1e2, 1e-2, 1.0])
    np.testing.assert_array_equal(one.weight, other.weight)
    np.testing.assert_array_equal(one.lambdas, other.lambdas)
    np.testing.assert_array_equal(one.lambdas, [1e-2, 1.0, 1e2])


def test_tensors_are_answered_in_tensors():
    arrays = digits(3, 60, 30)
    expected = analysis.linear_probe(*arrays, lambdas=[1.0, 10.0])
    probe = analysis.linear_probe(*map(torch.from_numpy, arrays), lambdas=[1.0, 10.0])
    for name in ("weight", "bias", "lambdas", "accuracies", "gaps"):
        assert isinstance(getattr(probe, name), torch.Tensor) and isinstance(getattr(expected, name), np.ndarray)
        np.testing.assert_array_equal(getattr(probe, name).numpy(), getattr(expected, name))
    new = arrays[2]
    by_hand = new @ expected.weight.T + expected.bias
    np.testing.assert_allclose(expected.logits(new), by_hand, rtol=1e-12)
    np.testing.assert_array_equal(expected.predict(new), by_hand.argmax(1))
    assert isinstance(probe.logits(new), torch.Tensor) and isinstance(expected.predict(new), np.ndarray)


def test_float32_features_are_fitted_in_double():
    x, y, valid_x, valid_y = digits(4, 80, 20)  # digits are whole numbers: float32 holds them exactly
    one = analysis.linear_probe(x.astype(np.float32), y, valid_x.astype(np.float32), valid_y, lambdas=[1e-1])
    other = analysis.linear_probe(x, y, valid_x, valid_y, lambdas=[1e-1])
    np.testing.assert_array_equal(one.weight, other.weight)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.floats(0.1, 10), st.floats(-50, 50), st.sampled_from([1e-2, 1.0, 30.0]))
def test_shift_scale_and_rotation(seed, scale, shift, lam):
    rng = np.random.default_rng(seed)
    x, y, valid = rng.normal(size=(40, 5)), np.arange(40) % 3, rng.normal(size=(9, 5))
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    plain = analysis.linear_probe(x, y, valid, y[:9], lambdas=[lam])
    moved = analysis.linear_probe(
        x @ turn * scale + shift, y, valid @ turn * scale + shift, y[:9], lambdas=[lam * scale**2]
    )
    # the objectives agree to 1e-6, parameters to about its root
    np.testing.assert_allclose(moved.weight * scale, plain.weight @ turn, atol=2e-2)
    np.testing.assert_allclose(moved.logits(valid @ turn * scale + shift), plain.logits(valid), atol=5e-2)


def test_a_class_without_samples_is_never_predicted():
    x, y, valid_x, valid_y = digits(4, 80, 20)
    probe = analysis.linear_probe(x, y + (y > 1), valid_x, valid_y + (valid_y > 1), lambdas=[1.0, 10.0])
    assert probe.weight.shape == (5, 64)
    assert probe.bias[2] == -math.inf and not probe.weight[2].any()
    assert 2 not in probe.predict(x)
    without = analysis.linear_probe(x, y, valid_x, valid_y, lambdas=[1.0, 10.0])
    np.testing.assert_allclose(np.delete(probe.logits(x), 2, axis=1), without.logits(x), rtol=1e-9)


def test_a_class_of_the_validation_data_alone_is_learnt_in_the_refit():
    x = np.array([[0.0], [1.0], [9.0], [10.0]])
    probe = analysis.linear_probe(x, [0, 0, 1, 1], [[50.0]], [2], lambdas=[1e-2])
    assert probe.accuracies[0] == 0
    np.testing.assert_array_equal(probe.predict([[0.0], [10.0], [50.0]]), [0, 1, 2])


def test_one_sample_of_each_class():
    probe = analysis.linear_probe(np.eye(6), np.arange(6), np.eye(6), np.arange(6), lambdas=[1e-8, 1e8])
    np.testing.assert_array_equal(probe.predict(np.eye(6)), np.arange(6))
    assert probe.gaps.max() <= 1e-6


def test_more_features_than_samples_and_images_as_features():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 3, 8, 8)), np.arange(12) % 2
    probe = analysis.linear_probe(x, y, x, y, lambdas=[1e-3, 1e-1])
    assert probe.weight.shape == (2, 192) and probe.accuracies.max() == 1
    np.testing.assert_array_equal(probe.predict(x), y)


def test_a_fit_that_is_not_proven_warns(monkeypatch):
    monkeypatch.setattr(_logistic, "MAX_ITERATIONS", 1)
    with pytest.warns(UserWarning, match="use larger lambdas"):
        probe = analysis.linear_probe(*digits(3, 60, 30), lambdas=[1e-4])
    assert probe.gaps[0] > 1e-6


X, Y = np.eye(4), np.array([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, [0, 0, 0, 0], X, Y), "all training labels are 0; a classifier needs two classes"),
        ((X * np.nan, Y, X, Y), "train_x are not finite in 4 of 4 rows"),
        ((X, Y, np.where(X == 1, np.inf, X)[:2], Y[:2]), "valid_x are not finite in 2 of 2 rows"),
        ((X, Y[:3], X, Y), "4 samples and 3 labels"),
        ((X, Y, X[:, :3], Y), "train_x has 4 features and valid_x 3"),
        ((X, -Y, X, Y), "class -1"),
        ((X, Y + 0.5, X, Y), "whole numbers"),
        ((X[:0], Y[:0], X, Y), "train_x must have shape"),
        ((X, Y, X[:0], Y[:0]), "valid_x must have shape"),
        ((X, Y, X, Y, []), "lambdas must be numbers above 0"),
        ((X, Y, X, Y, [1.0, 0.0]), "lambdas must be numbers above 0"),
        ((X, Y, X, Y, [math.nan]), "lambdas must be numbers above 0"),
        ((X, Y, X, Y, [math.inf]), "lambdas must be numbers above 0"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        analysis.linear_probe(*arguments)
