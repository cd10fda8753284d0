"""Multinomial logistic regression to a proven accuracy, on the device of the data.

L-BFGS that starts from a Kronecker-factored model of the Hessian in place of a multiple of the identity. An iteration
is two products with the features; to try another step length needs none, as logits are linear in the parameters.

Parameters are one array theta (C, d + 1): the weights and, in the last column, the bias. Logits and probabilities are
(C, N), which makes the first product faster. All is float64: in float32 the gradient is rounded by more than the proof
allows once λ is small.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

MEMORY = 10  # pairs of L-BFGS; 5 to 40 took about as many iterations
MAX_ITERATIONS = 300  # ten times what a good start needs
REFRESH = 8  # iterations after which the model of the Hessian is made anew
MAX_TRIALS = 30  # step lengths
MAX_BIAS_STEPS = 20
SLOPE = 0.5  # a step is long enough once the slope has fallen to this share
ROUNDING = 1e-12  # of an objective that is a sum over many samples


class Problem(NamedTuple):
    """Features (N, d + 1), best with mean 0, the last one 1; labels (N,) from 0 to C − 1; and the penalty λ."""

    x: Tensor
    y: Tensor
    lam: float


class Point(NamedTuple):
    """What is known at theta; `residual` (C, N) is p − onehot(y), and `gradient` is that of the objective."""

    theta: Tensor
    logits: Tensor
    objective: Tensor
    residual: Tensor
    gradient: Tensor


class Curvature(NamedTuple):
    r"""A model of the Hessian of the cross-entropy, by eigenvalues and eigenvectors of its two factors.

    .. math:: \sum_n (\mathrm{diag}\,p_n - p_n p_n^\top) \otimes x_n x_n^\top \approx A \otimes K, \qquad
              K = \sum_n w_n x_n x_n^\top, \quad w_n = 1 - \|p_n\|^2

    with A the sum of the first factors over `total`, that of the w, so that both sides have the same trace. Features
    are less `centre`, their mean of weights w; weights and bias are then apart in the model.

    Reference: Martens, Grosse. Optimizing Neural Networks with Kronecker-Factored Approximate Curvature. ICML 2015.
    """

    a: Tensor
    classes: Tensor
    k: Tensor
    axes: Tensor
    centre: Tensor
    total: Tensor


def minimise(
    problem: Problem, start: Tensor, tolerance: float, model: Curvature | None = None
) -> tuple[Tensor, float, Curvature | None]:
    """The minimum, its proven relative accuracy, and the model of the Hessian, to begin with at a neighbouring λ.

    The accuracy is at most `tolerance`, unless rounding or `MAX_ITERATIONS` prevents it.
    """
    at = evaluate(problem, start)
    pairs: deque[tuple[Tensor, Tensor]] = deque(maxlen=MEMORY)
    for iteration in range(1, MAX_ITERATIONS + 1):
        if weight_gap(problem, at) <= tolerance:
            at = with_best_bias(problem, at, tolerance)
            if gap(problem, at) <= tolerance:
                break
        if model is None or iteration % REFRESH == 0:
            model = curvature(problem, at.residual)
        new = search(problem, at, direction(at.gradient, pairs, partial(solve, model, problem.lam)))
        s, y = new.theta - at.theta, new.gradient - at.gradient
        if not bool((s * y).sum() > 0) or bool(new.objective > at.objective * (1 + ROUNDING)):
            break  # rounding is all that is left
        pairs.append((s, y))
        at = new
    return at.theta, gap(problem, at), model


def evaluate(problem: Problem, theta: Tensor) -> Point:
    logits = theta @ problem.x.T
    return point(problem, theta, logits, *objective(problem, theta, logits))


def objective(problem: Problem, theta: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    r"""The objective :math:`\sum_n \mathrm{CE}_n + \lambda \|W\|_F^2`, and the residual p − onehot(y) (C, N)."""
    log_p = logits.log_softmax(0)
    target = problem.y[None]
    loss = -log_p.gather(0, target).sum()
    residual = log_p.exp_()
    residual.scatter_add_(0, target, residual.new_full(target.shape, -1.0))
    return loss + problem.lam * theta[:, :-1].square().sum(), residual


def point(problem: Problem, theta: Tensor, logits: Tensor, value: Tensor, residual: Tensor) -> Point:
    gradient = residual @ problem.x
    gradient[:, :-1] += 2 * problem.lam * theta[:, :-1]
    return Point(theta, logits, value, residual, gradient)


def probabilities(problem: Problem, residual: Tensor) -> Tensor:
    target = problem.y[None]
    return residual.scatter_add(0, target, residual.new_ones(target.shape))


def weight_gap(problem: Problem, at: Point) -> float:
    r"""The duality gap relative to the objective: how far above its minimum that is at most, if the bias is optimal.

    .. math:: f(W, b) - f^* \le \|\nabla_W f\|_F^2 / 4 \lambda

    With the best bias for W the probabilities are a point of the dual problem; this is the distance of the objectives.
    """
    return float(at.gradient[:, :-1].square().sum() / (4 * problem.lam) / at.objective)


def gap(problem: Problem, at: Point) -> float:
    """The same with what is left of the bias's gradient, counted with the size of the bias."""
    bias, slope = at.theta[:, -1], at.gradient[:, -1]
    return weight_gap(problem, at) + float((slope.abs() * (1 + bias.abs())).sum() / at.objective)


def with_best_bias(problem: Problem, at: Point, tolerance: float) -> Point:
    """The point with the best bias for its weights, by Newton's method; one product with the features."""
    theta, logits, value, residual, _ = at
    for _ in range(MAX_BIAS_STEPS):
        slope = residual.sum(1)
        if bool((slope.abs() * (1 + theta[:, -1].abs())).sum() <= 0.1 * tolerance * value):
            break
        p = probabilities(problem, residual)
        hessian = p.sum(1).diag() - p @ p.T
        # a shift of all classes alike has neither slope nor curvature; with some, the matrix can be inverted
        hessian += hessian.trace() * (
            1 / len(slope) ** 2 + 1e-15 * torch.eye(len(slope), dtype=p.dtype, device=p.device)
        )
        step = -torch.linalg.solve(hessian, slope)[:, None]
        theta, logits = torch.cat((theta[:, :-1], theta[:, -1:] + step), dim=1), logits + step
        value, residual = objective(problem, theta, logits)
    return point(problem, theta, logits, value, residual)


def curvature(problem: Problem, residual: Tensor) -> Curvature:
    x, p = problem.x[:, :-1], probabilities(problem, residual)
    w = (1 - p.square().sum(0)).clamp_min(0)
    total = w.sum().clamp_min(torch.finfo(w.dtype).tiny)
    centre = w @ x / total
    weighed = x.float() * w.sqrt().float()[:, None]  # the model need not be exact
    a, classes = torch.linalg.eigh((p.sum(1).diag() - p @ p.T) / total)
    k, axes = torch.linalg.eigh((weighed.T @ weighed).double() - total * torch.outer(centre, centre))
    return Curvature(a.clamp_min(0), classes, k.clamp_min(0), axes, centre, total)


def solve(model: Curvature, lam: float, g: Tensor) -> Tensor:
    """(A ⊗ K + 2λ)⁻¹ times a gradient (C, d + 1)."""
    a, classes, k, axes, centre, total = model
    apart = g[:, :-1] - torch.outer(g[:, -1], centre)
    weight = classes @ ((classes.T @ apart @ axes) / (torch.outer(a, k) + 2 * lam)) @ axes.T
    # the eigenvalue of a shift of all classes alike is 0 but for rounding
    bias_scale = torch.where(a > 1e-12 * a[-1], 1 / (a * total), 0.0)
    bias = classes @ (bias_scale * (classes.T @ g[:, -1])) - weight @ centre
    return torch.cat((weight, bias[:, None]), dim=1)


def direction(g: Tensor, pairs: Iterable[tuple[Tensor, Tensor]], inverse: Callable[[Tensor], Tensor]) -> Tensor:
    """The direction of L-BFGS, by the two loops of Nocedal and Wright, Numerical Optimization, algorithm 7.4."""
    q, passed = g, []
    for s, y in reversed(list(pairs)):
        rho = 1 / (s * y).sum()
        alpha = rho * (s * q).sum()
        q = q - alpha * y
        passed.append((s, y, rho, alpha))
    d = inverse(q)
    for s, y, rho, alpha in reversed(passed):
        d = d + (alpha - rho * (y * d).sum()) * s
    return -d


def search(problem: Problem, at: Point, d: Tensor) -> Point:
    """A point along `d` where the slope has halved; the objective being convex, the slope's sign brackets it."""
    far = (at.theta + d) @ problem.x.T
    change = far - at.logits
    low = 0.0, float((at.gradient * d).sum())
    high: tuple[float, float] | None = None
    enough, limit = -SLOPE * low[1], at.objective * (1 + ROUNDING)
    t = 1.0
    for _ in range(MAX_TRIALS):
        theta, logits = at.theta + t * d, far if t == 1 else at.logits + t * change
        value, residual = objective(problem, theta, logits)
        slope = float((residual * change).sum() + 2 * problem.lam * (theta * d)[:, :-1].sum())
        if abs(slope) <= enough and bool(value <= limit):
            break
        if slope > 0:
            high = t, slope
        else:
            low = t, slope
        t = 2 * t if high is None else low[0] - low[1] * (high[0] - low[0]) / (high[1] - low[1])
    return point(problem, theta, logits, value, residual)
