"""What logits are worth, and how sure that is: the same metrics for a choice and for the report."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..analysis import METRICS

NAMES = ("accuracy", "balanced_accuracy", "nll", "ece")
CHOICES = ("balanced_accuracy", "accuracy", "nll")
BINS = 15  # of the calibration error
RESAMPLES = 2_000
DRAWS = 2**22  # numbers held at once

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval: quantiles of the bootstrap, moved by as much as its mean is beside the number.

    The calibration error needs that: drawn again, samples look less calibrated than they are.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """One metric of the network as it was, corrected, and the difference."""

    metric: str
    before: Estimate
    after: Estimate
    difference: Estimate

    @property
    def is_better(self) -> bool:
        """Whether the whole interval of the difference is on the good side of 0."""
        gain = self.difference.low if METRICS[self.metric].higher_is_better else -self.difference.high
        return gain > 0

    @property
    def is_worse(self) -> bool:
        loss = self.difference.high if METRICS[self.metric].higher_is_better else -self.difference.low
        return loss < 0


def class_weights(labels: Tensor, prior: Tensor | None) -> Tensor:
    """How much each sample counts (N,), so that classes have the shares `prior`; 1 each where there is none."""
    if prior is None:
        return torch.ones(len(labels), dtype=torch.float64)
    shares = torch.bincount(labels, minlength=len(prior)).double() / len(labels)
    weights = (prior / shares)[labels]
    return weights / weights.mean()


def parts(logits: Tensor, labels: Tensor, weights: Tensor) -> Floats:
    """A row for each sample, whose sums over samples make up the metrics: (N, 3 + bins).

    Columns are accuracy, balanced accuracy and negative log-likelihood, then the gaps between confidence and
    accuracy in each bin, whose sizes sum to the calibration error.
    """
    log_p = logits.double().log_softmax(1)
    confidence, pred = log_p.exp().max(1)
    right = (pred == labels).double()
    w = weights / weights.sum()
    counts = torch.bincount(labels)
    balanced = 1 / (counts[labels] * (counts > 0).sum())
    nll = -log_p.gather(1, labels[:, None]).squeeze(1)
    edges = torch.arange(1, BINS, dtype=torch.float64) / BINS
    gaps = torch.nn.functional.one_hot(torch.bucketize(confidence, edges), BINS) * (w * (right - confidence))[:, None]
    return torch.cat([torch.stack([w * right, balanced * right, w * nll], 1), gaps], 1).numpy()


def metrics_of(sums: Floats) -> Floats:
    """Sums of `parts` (…, 3 + bins) -> the metrics, in the order of `NAMES`."""
    return np.concatenate([sums[..., :3], np.abs(sums[..., 3:]).sum(-1, keepdims=True)], -1)


def metrics(logits: Tensor, labels: Tensor, weights: Tensor) -> dict[str, float]:
    """Every metric of `NAMES`. Samples count by `weights`, except for balanced accuracy, which weighs by itself."""
    return dict(zip(NAMES, metrics_of(parts(logits, labels, weights).sum(0)).tolist(), strict=True))


def score(metric: str, logits: Tensor, labels: Tensor, weights: Tensor) -> float:
    """One of `CHOICES` alone: of the two accuracies without a softmax, which is most of the work for many classes."""
    if metric == "nll":
        return metrics(logits, labels, weights)[metric]
    if metric == "balanced_accuracy":
        weights = 1 / torch.bincount(labels)[labels].double()
    right = (logits.argmax(1) == labels).double()
    return float((weights * right).sum() / weights.sum())


def compared(before: Tensor, after: Tensor, labels: Tensor, weights: Tensor, seed: int) -> dict[str, Score]:
    """Both networks' metrics on the same samples, and the differences, with 95 % intervals by a paired bootstrap.

    Samples are drawn again within their class, as the halves were, and are the same for both networks.
    """
    both = np.stack([parts(logits, labels, weights) for logits in (before, after)], 1)
    values, drawn = (
        np.concatenate([scores, scores[..., 1:, :] - scores[..., :1, :]], -2)  # before, after, difference
        for scores in (metrics_of(both.sum(0)), metrics_of(_resampled(both, labels.numpy(), seed)))
    )
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0) + values - drawn.mean(0)
    most = [math.inf if name == "nll" else 1 for name in NAMES]
    low[:2], high[:2] = low[:2].clip(0, most), high[:2].clip(0, most)
    return {
        name: Score(name, *(Estimate(*map(float, (values[k, i], low[k, i], high[k, i]))) for k in range(3)))
        for i, name in enumerate(NAMES)
    }


def _resampled(rows: Floats, labels: NDArray[np.int64], seed: int) -> Floats:
    """Sums (resamples, …) over as many rows (N, …) of each class as it has, drawn with replacement."""
    order = labels.argsort(kind="stable")
    n, sizes = len(labels), np.bincount(labels)
    own_size = sizes[labels[order]]
    own_start = (sizes.cumsum() - sizes)[labels[order]]
    table, generator = rows[order].reshape(n, -1), np.random.default_rng(seed)
    sums = []
    for start in range(0, RESAMPLES, step := max(1, DRAWS // n)):
        size = min(step, RESAMPLES - start)
        drawn = own_start + (generator.random((size, n)) * own_size).astype(np.int64)
        times = np.bincount((drawn + n * np.arange(size)[:, None]).ravel(), minlength=size * n).reshape(size, n)
        sums.append(times @ table)
    return np.concatenate(sums).reshape(RESAMPLES, *rows.shape[1:])
