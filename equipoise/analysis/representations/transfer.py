"""How much a frozen representation is worth to other data: a linear classifier on its features."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .._kinds import Array, double, either_kind, features_of, labels_of
from ._logistic import Problem, minimise

LAMBDAS = tuple(10 ** (i / 4 - 6) for i in range(45))  # 1e-6 to 1e5, as in the paper
STRIDE = 10**0.25
TOLERANCE = 1e-6  # of the objective, relative


@dataclass(frozen=True)
class LinearProbe:
    """A linear classifier of features, and how its penalty was chosen.

    `weight` (C, d) and `bias` (C,) are fitted to training and validation data with the penalty `lam`. For each of
    `lambdas` (L,), rising, `accuracies` (L,) are those on the validation data of a fit to the training data, and `gaps`
    (L,) say how far that fit's objective is above its minimum at most, relative to it.
    """

    weight: Array
    bias: Array
    lam: float
    lambdas: Array
    accuracies: Array
    gaps: Array

    def logits(self, features: Array) -> Array:
        """Features (N, d) -> logits (N, C) in float64; a tensor where the features or the probe are."""
        return _logits(features, self.weight, self.bias)

    def predict(self, features: Array) -> Array:
        """Features (N, d) -> class indices (N,)."""
        return _predict(features, self.weight, self.bias)


@either_kind
def linear_probe(
    train_x: Array, train_y: Array, valid_x: Array, valid_y: Array, lambdas: Sequence[float] = LAMBDAS
) -> LinearProbe:
    r"""Multinomial logistic regression on frozen features; its penalty is chosen on held-out data, then all are fitted.

    .. math:: \min_{W, b} \; \sum_n -\log \mathrm{softmax}(W x_n + b)_{y_n} + \lambda \|W\|_F^2

    The sum over samples, no half, the bias free: scikit-learn's ``C`` is 1 / 2λ (1 / λ for two classes, where it has
    one row of weights in place of two). Each λ is fitted to the training data. The one of the best validation accuracy,
    of equals the largest, is fitted again to training and validation data. Every objective is within 1e-6 of its
    minimum, relative: the duality gap proves it. Where rounding prevents that a warning says so, and `gaps` how far.

    The paper goes through λ upwards. Here it goes down: at the largest λ the weights are near 0 and quickly found, and
    each further fit begins where the parabola in log λ through the last three leads.

    Args:
        train_x: features (N, d); further dimensions are flattened.
        train_y: labels (N,), whole numbers from 0.
        valid_x: held-out features (M, d).
        valid_y: their labels (M,); a class that has no training sample is an error at every λ.
        lambdas: penalties above 0, in any order; by default the paper's 45 from 1e-6 to 1e5.

    A class without any sample has weight 0 and bias −inf, the limit of the minimum. Constant features give weight 0 and
    the logarithms of the class frequencies as bias, less their mean. Features that are not finite are an error, and so
    is training data of a single class.

    >>> probe = linear_probe([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1], [[1.4], [2.6]], [0, 1])
    >>> probe.predict([[-1.0], [5.0]])
    array([0, 1])

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? NeurIPS
    2021, appendix A.2.
    """
    x, y = double(features_of(train_x, "train_x")), labels_of(train_y, len(train_x))
    held_x, held_y = double(features_of(valid_x, "valid_x")), labels_of(valid_y, len(valid_x))
    if x.shape[1] != held_x.shape[1]:
        raise ValueError(f"train_x has {x.shape[1]} features and valid_x {held_x.shape[1]}")
    num_classes = 1 + max(int(y.max()), int(held_y.max()))
    tried, best = _path(_samples(x, y), held_x, held_y, _falling(lambdas), num_classes)
    final = _refit(_samples(torch.cat((x, held_x)), torch.cat((y, held_y))), best)
    _check_gap(max(final.gap, *(gap for _, _, gap in tried)))
    lams, accuracies, gaps = x.new_tensor(sorted(tried)).unbind(1)
    return LinearProbe(final.weight, final.bias, final.lam, lams, accuracies, gaps)


class _Samples(NamedTuple):
    """Features less their mean `centre` (d,), then a 1: (N, d + 1); labels (N,) as places in `classes` that occur."""

    x: Tensor
    y: Tensor
    centre: Tensor
    classes: Tensor


class _Fit(NamedTuple):
    """Weights (C, d) and bias (C,) for features as given, and how near to the minimum they are."""

    lam: float
    weight: Tensor
    bias: Tensor
    gap: float


def _samples(x: Tensor, y: Tensor) -> _Samples:
    classes, places = y.unique(return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"all training labels are {int(classes)}; a classifier needs two classes")
    centre = x.mean(0)
    return _Samples(F.pad(x - centre, (0, 1), value=1.0), places, centre, classes)


def _path(
    samples: _Samples, held_x: Tensor, held_y: Tensor, lambdas: Sequence[float], num_classes: int
) -> tuple[list[tuple[float, float, float]], _Fit]:
    """Each λ with its validation accuracy and gap, and the best fit; the earliest, so the largest λ, of equals."""
    tried: list[tuple[float, float, float]] = []
    best, best_accuracy = None, -1.0
    for lam, theta, gap in _descend(samples, lambdas):
        fit = _for_given_features(samples, theta, lam, gap, num_classes)
        accuracy = float(double(_predict(held_x, fit.weight, fit.bias) == held_y).mean())
        tried.append((lam, accuracy, gap))
        if accuracy > best_accuracy:
            best, best_accuracy = fit, accuracy
    assert best is not None
    return tried, best


def _descend(samples: _Samples, lambdas: Sequence[float]) -> Iterator[tuple[float, Tensor, float]]:
    """Each λ, in falling order, with its parameters and gap."""
    last: list[tuple[float, Tensor]] = []
    model = None
    for lam in _with_steps(lambdas, top=float(samples.x[:, :-1].square().sum()) / 4):
        start = _ahead(last, lam) if last else _without_weights(samples)
        theta, gap, model = minimise(Problem(samples.x, samples.y, lam), start, TOLERANCE, model)
        last = [*last[-2:], (lam, theta)]
        if lam in lambdas:
            yield lam, theta, gap


def _with_steps(lambdas: Sequence[float], top: float) -> list[float]:
    """Falling penalties with steps between them, and down from `top`, where the penalty outweighs the features.

    None is then below the one before by more than the paper's factor: a fit that begins far off may take thousands of
    iterations where classes can be separated and λ is small.
    """
    path: list[float] = []
    for lam in lambdas:
        above = path[-1] if path else max(lam, top)
        steps = max(1, math.ceil(math.log(above / lam) / math.log(STRIDE) - 1e-6))
        path += [lam * (above / lam) ** (1 - i / steps) for i in range(1, steps)] + [lam]
    return path


def _without_weights(samples: _Samples) -> Tensor:
    """The minimum as λ grows without bound: the class frequencies alone."""
    bias = double(samples.y.bincount()).log()
    return F.pad((bias - bias.mean())[:, None], (len(samples.centre), 0))


def _ahead(last: Sequence[tuple[float, Tensor]], lam: float) -> Tensor:
    """Where the polynomial in log λ through the last fits is at `lam`."""
    at, now = [math.log(one) for one, _ in last], math.log(lam)
    shares = [math.prod((now - b) / (a - b) for b in at if b != a) for a in at]
    return torch.stack([share * theta for share, (_, theta) in zip(shares, last, strict=True)]).sum(0)


def _for_given_features(samples: _Samples, theta: Tensor, lam: float, gap: float, num_classes: int) -> _Fit:
    weight, bias = theta.new_zeros(num_classes, theta.shape[1] - 1), theta.new_full((num_classes,), -math.inf)
    weight[samples.classes] = theta[:, :-1]
    bias[samples.classes] = theta[:, -1] - theta[:, :-1] @ samples.centre
    return _Fit(lam, weight, bias, gap)


def _refit(samples: _Samples, begin: _Fit) -> _Fit:
    """The fit of these samples with the same λ, begun at a fit of some of them."""
    weight = begin.weight[samples.classes]
    bias = begin.bias[samples.classes].nan_to_num(neginf=0.0) + weight @ samples.centre
    start = torch.cat((weight, bias[:, None]), dim=1)
    theta, gap, _ = minimise(Problem(samples.x, samples.y, begin.lam), start, TOLERANCE)
    if gap > TOLERANCE:  # new samples on the wrong side of weights that are large: as far off as a fit can begin
        ((_, theta, gap),) = _descend(samples, [begin.lam])
    return _for_given_features(samples, theta, begin.lam, gap, len(begin.bias))


def _falling(lambdas: Sequence[float]) -> list[float]:
    values = [float(lam) for lam in lambdas]
    if not values or not all(math.isfinite(lam) and lam > 0 for lam in values):
        raise ValueError(f"lambdas must be numbers above 0, at least one, not {list(lambdas)}")
    return sorted(set(values), reverse=True)


def _check_gap(gap: float) -> None:
    if gap > TOLERANCE:
        warnings.warn(
            f"an objective is proven to within {gap:.1g} of its minimum only; use larger lambdas", stacklevel=4
        )


@either_kind
def _logits(features: Array, weight: Array, bias: Array) -> Tensor:
    return double(features_of(features)) @ double(weight).T + double(bias)


@either_kind
def _predict(features: Array, weight: Array, bias: Array) -> Tensor:
    return _logits(features, weight, bias).argmax(1)
