"""The solver of the linear probe: derivatives against autograd, its bound against the truth."""

import pytest
import torch
import torch.nn.functional as F

from equipoise.analysis.representations import _logistic
from equipoise.analysis.representations._logistic import Point, Problem


def problem(n=30, d=4, classes=3, lam=0.1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator).double()
    x = torch.cat((x - x.mean(0), torch.ones(n, 1).double()), dim=1)
    return Problem(x, torch.randint(0, classes, (n,), generator=generator), lam)


def plain(p, theta):
    """The objective as one would write it."""
    logits = p.x[:, :-1] @ theta[:, :-1].T + theta[:, -1]
    return F.cross_entropy(logits, p.y, reduction="sum") + p.lam * (theta[:, :-1] ** 2).sum()


def some_theta(p, classes=3, size=1.0, seed=1):
    return size * torch.randn(classes, p.x.shape[1], generator=torch.Generator().manual_seed(seed)).double()


def minimum(p, classes=3):
    theta, gap, _ = _logistic.minimise(p, torch.zeros(classes, p.x.shape[1]).double(), 1e-11)
    assert gap <= 1e-11
    return float(plain(p, theta))


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0])
def test_objective_and_gradient_like_autograd(size):
    p = problem()
    theta = some_theta(p, size=size).requires_grad_()
    value = plain(p, theta)
    (slope,) = torch.autograd.grad(value, theta)
    at = _logistic.evaluate(p, theta.detach())
    torch.testing.assert_close(at.objective, value.detach(), rtol=1e-12, atol=0)
    torch.testing.assert_close(at.gradient, slope, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(at.residual.T + F.one_hot(p.y, 3), at.logits.T.softmax(1), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("size", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("lam", [1e-4, 0.1, 10.0])
def test_the_gap_is_never_below_the_true_distance(size, lam):
    p = problem(lam=lam)
    best = minimum(p)
    at = _logistic.evaluate(p, some_theta(p, size=size))
    at = _logistic.with_best_bias(p, at, 1e-12)
    true = (float(at.objective) - best) / float(at.objective)
    assert true - 1e-11 <= _logistic.weight_gap(p, at) <= _logistic.gap(p, at)


def test_where_gradient_vanishes_so_does_the_gap():
    p = problem()
    theta, gap, _ = _logistic.minimise(p, torch.zeros(3, 5).double(), 1e-11)
    at = _logistic.evaluate(p, theta)
    assert float(at.gradient.abs().max()) < 1e-5 and 0 <= gap <= 1e-11


def test_a_wrong_bias_counts_in_the_gap():
    p = problem()
    theta, _, _ = _logistic.minimise(p, torch.zeros(3, 5).double(), 1e-11)
    theta[0, -1] += 0.1
    at = _logistic.evaluate(p, theta)
    assert _logistic.gap(p, at) > _logistic.weight_gap(p, at) + 1e-3
    mended = _logistic.with_best_bias(p, at, 1e-12)
    torch.testing.assert_close(mended.theta[:, :-1], theta[:, :-1], rtol=0, atol=0)
    assert float(mended.gradient[:, -1].abs().max()) < 1e-10
    assert isinstance(mended, Point)


def test_the_curvature_is_exact_where_probabilities_are_equal():
    """At theta = 0 all samples have the same probabilities, and the Hessian is one Kronecker product."""
    p = problem(lam=0.7)
    p.x[:, :-1] += torch.tensor([0.5, -1.0, 2.0, 0.0]).double()  # weights and bias are no longer apart by themselves
    theta = torch.zeros(3, 5).double()
    hessian = torch.autograd.functional.hessian(lambda t: plain(p, t), theta).reshape(15, 15)
    model = _logistic.curvature(p, _logistic.evaluate(p, theta).residual)
    v = some_theta(p)
    v = v - v.mean(0)  # a shift of all classes alike is not told apart
    back = _logistic.solve(model, p.lam, (hessian @ v.flatten()).reshape(3, 5))
    torch.testing.assert_close(back, v, rtol=1e-5, atol=1e-5)  # one factor is summed in float32


def test_the_curvature_has_the_trace_of_the_hessian():
    p = problem(lam=0.5)
    theta = some_theta(p)
    hessian = torch.autograd.functional.hessian(lambda t: plain(p, t), theta)[:, :-1, :, :-1].reshape(12, 12)
    residual = _logistic.evaluate(p, theta).residual
    model = _logistic.curvature(p, residual)
    basis = torch.eye(12).double().reshape(12, 3, 4)
    with_bias = torch.cat((basis, torch.zeros(12, 3, 1).double()), dim=2)
    whole = torch.linalg.inv(torch.stack([_logistic.solve(model, p.lam, g)[:, :-1].flatten() for g in with_bias]))
    w = 1 - (residual.T + F.one_hot(p.y, 3)).square().sum(1)
    off_centre = float(
        w.sum() * ((w @ p.x[:, :-1]) / w.sum()).square().sum()
    )  # what centring by the weighted mean takes away
    assert float(whole.trace()) == pytest.approx(float(hessian.diagonal().sum()) - off_centre, rel=1e-5)


def test_a_direction_of_many_pairs_is_newton_s_on_a_quadratic():
    """L-BFGS with a pair for each dimension knows the Hessian of a quadratic."""
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(4, 4, generator=generator).double()
    hessian = root @ root.T + torch.eye(4).double()
    axes = torch.linalg.eigh(hessian)[1].T  # conjugate, so that later pairs keep what earlier ones taught
    pairs = [(s[None], (hessian @ s)[None]) for s in axes]
    g = torch.randn(1, 4, generator=generator).double()
    newton = -torch.linalg.solve(hessian, g[0])[None]
    torch.testing.assert_close(_logistic.direction(g, pairs, lambda q: 7 * q), newton)
    torch.testing.assert_close(_logistic.direction(g, [], lambda q: 7 * q), -7 * g)


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_the_search_mends_steps_of_any_length(length):
    p = problem()
    at = _logistic.evaluate(p, torch.zeros(3, 5).double())
    new = _logistic.search(p, at, -length * at.gradient)
    assert float(new.objective) < float(at.objective)
    before, after = (float((point.gradient * at.gradient).sum()) for point in (at, new))
    assert abs(after) <= 0.5 * before
    torch.testing.assert_close(new.objective, plain(p, new.theta), rtol=1e-12, atol=0)
    torch.testing.assert_close(new.logits, new.theta @ p.x.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("lam", [1e-9, 1e9])
def test_extreme_penalties(lam):
    p = problem(lam=lam)
    _, gap, _ = _logistic.minimise(p, torch.zeros(3, 5).double(), 1e-6)
    assert gap <= 1e-6
