"""Training progress class by class: how far features move from those of new data, and how hard they are pushed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core import checks
from .._kinds import Array, double, either_kind, labels_of
from ._rows import class_sums, lengths, rows_at_once, rows_of, unit_rows


@either_kind
def feature_deviation(
    train_features: Array,
    train_labels: Array,
    test_features: Array,
    test_labels: Array,
    rounds: int = 1000,
    seed: int = 0,
) -> Any:
    r"""Distance between the mean training and test feature of each class: (N, d), (N,), (M, d), (M,) -> (C,).

    .. math:: \mathrm{dis}(c) = \frac1R \sum_{r=1}^R
        \big\| \mathrm{mean}(S_K(\{x^{(c)}_\mathrm{train}\})) - \mathrm{mean}(\{x^{(c)}_\mathrm{test}\}) \big\|_2

    of features divided by their length. S_K draws K samples of the class without replacement, K being the size of the
    smallest class in training, so that means of all classes are equally uncertain; of the smallest class itself all R
    draws are the same. Rows of zeros stay zeros, maps are flattened.

    Args:
        rounds: R. The draws of a class are one matrix of shares (R, N_c), which is multiplied with its features.
        seed: of the draws, which differ between a CPU and a GPU.

    C is the largest label plus one. NaN for a class that has no training or no test samples.

    >>> train, test = [[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -2.0]]
    >>> feature_deviation(train, [0, 0, 1], test, [0, 1])
    array([0., 2.])

    Reference: Ye, Zhan, Chao. Procrustean Training for Imbalanced Deep Learning. ICCV 2021, section 5.4.
    """
    checks.whole("rounds", rounds, 1)
    train, test = rows_of(train_features, "train_features"), rows_of(test_features, "test_features")
    if train.shape[1] != test.shape[1]:
        raise ValueError(f"train_features have width {train.shape[1]} and test_features {test.shape[1]}")
    y, z = labels_of(train_labels, len(train)).to(train.device), labels_of(test_labels, len(test)).to(train.device)
    num_classes = int(max(y.max(), z.max())) + 1
    test_means = _class_means(unit_rows(test).to(train.device), z, num_classes)
    counts = torch.bincount(y, minlength=num_classes).tolist()
    size = min(n for n in counts if n)
    generator = torch.Generator(train.device).manual_seed(seed)
    classes = unit_rows(train)[y.argsort(stable=True)].split(counts)
    means = (subsample_means(rows, size, rounds, generator) for rows in classes)
    return torch.stack([lengths(m - test_mean).mean() for m, test_mean in zip(means, test_means, strict=True)])


@either_kind
def feature_gradient_norms(gradients: Array, labels: Array, num_classes: int) -> Any:
    r"""Mean length of the loss gradient with respect to the features of each class's samples: (N, d), (N,) -> (C,).

    .. math:: \frac{1}{N_c} \sum_{n: y_n = c} \Big\| \frac{\partial \ell_n}{\partial x_n} \Big\|_2

    Row n is the gradient of that sample's own loss: of the sum of a batch's losses, not of its mean, whose 1/B would be
    in every row. Gradients with respect to maps are flattened. NaN for a class without samples.

    >>> feature_gradient_norms([[3.0, 4.0], [0.0, 1.0], [0.0, 2.0]], [0, 0, 2], num_classes=3)
    array([ 3., nan,  2.])

    Reference: Ye, Zhan, Chao. Procrustean Training for Imbalanced Deep Learning. ICCV 2021, figure 4.
    """
    g = rows_of(gradients, "gradients")
    y = labels_of(labels, len(g), checks.whole("num_classes", num_classes, 1)).to(g.device)
    return _class_means(lengths(g)[:, None], y, num_classes).squeeze(1)


@either_kind
def cross_entropy_gradients(logits: Array, labels: Array, weight: Array) -> Any:
    r"""Gradient of each sample's cross-entropy with respect to its feature: (N, C), (N,), (C, d) -> (N, d).

    .. math:: \frac{\partial \ell_n}{\partial x_n} = W^\top (\mathrm{softmax}(z_n) - e_{y_n}), \qquad z_n = W x_n + b

    for the feature that a linear final layer with this weight takes in. No backward pass is needed.

    >>> cross_entropy_gradients([[0.0, 0.0]], [0], [[1.0, 0.0], [0.0, 2.0]])
    array([[-0.5, 1. ]])
    """
    z, w = rows_of(logits, "logits"), rows_of(weight, "weight")
    if z.shape[1] != len(w):
        raise ValueError(f"logits are of {z.shape[1]} classes and weight of {len(w)}; both must be of the same")
    y = labels_of(labels, len(z), len(w)).to(z.device)
    error = double(z).softmax(dim=1)
    error[torch.arange(len(z), device=z.device), y] -= 1
    return error @ double(w).to(z.device)


def subsample_means(rows: Tensor, size: int, rounds: int, generator: torch.Generator) -> Tensor:
    """Means of `size` rows drawn without replacement, `rounds` times: (N, d) -> (R, d); NaN if there are no rows.

    The rows with the largest of N random keys are drawn. Rounds are taken some at a time, as memory allows.
    """
    n = len(rows)
    if n <= size:
        return rows.mean(dim=0).expand(rounds, -1)  # there is one way to draw all of them
    means, at_once = [], rows_at_once(n)
    for start in range(0, rounds, at_once):
        keys = torch.rand(min(at_once, rounds - start), n, dtype=torch.float32, generator=generator, device=rows.device)
        shares = torch.zeros_like(keys, dtype=rows.dtype)
        shares.scatter_(1, keys.topk(size, dim=1, sorted=False).indices, 1 / size)
        means.append(shares @ rows)
    return torch.cat(means)


def _class_means(values: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """(N, d), (N,) -> (C, d); NaN, which is 0 / 0, for a class without samples."""
    return class_sums(values, labels, num_classes) / torch.bincount(labels, minlength=num_classes)[:, None]
