"""The numbers kept of every run, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .. import _arrays
from .._arrays import totals
from .._kinds import Array, as_tensor, double
from . import accuracy, calibration

BINS = 15  # of the calibration error
TOP = 5  # of the top-5 accuracy


@dataclass(frozen=True)
class Judged:
    """What all metrics are made from: one number per sample (N,), per class (C,), per frequency group (3,)."""

    right: Tensor
    in_top: Tensor
    confidence: Tensor
    nll: Tensor
    brier: Tensor
    recall: Tensor
    f1: Tensor
    group: Tensor


@dataclass(frozen=True)
class Metric:
    """One number of a run. Of unit "percent" it is a fraction from 0 to 1; showing it times 100 is the report's."""

    name: str
    label: str
    function: Callable[[Array, Array, Array], float]
    higher_is_better: bool
    unit: Literal["percent", "nats", ""]

    @property
    def point(self) -> float:
        """A difference of 1 as people write it: a point of percent, else one unit."""
        return 0.01 if self.unit == "percent" else 1.0


def _ece(j: Judged) -> Tensor:
    return calibration.mean_gap(calibration.even_bins(j.confidence, BINS), j.right - j.confidence, BINS)


FORMULAS: dict[str, Callable[[Judged], Tensor]] = {
    "accuracy": lambda j: j.right.mean(),
    "top5": lambda j: j.in_top.mean(),
    "balanced_accuracy": lambda j: j.recall.nanmean(),
    "macro_f1": lambda j: j.f1.nanmean(),
    "worst_class": lambda j: accuracy.least(j.recall),
    "many": lambda j: j.group[0],
    "medium": lambda j: j.group[1],
    "few": lambda j: j.group[2],
    "nll": lambda j: j.nll.mean(),
    "brier": lambda j: j.brier.mean(),
    "ece": _ece,
}


def _alone(name: str) -> Callable[[Array, Array, Array], float]:
    return lambda logits, labels, class_counts: evaluate(logits, labels, class_counts)[name]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", _alone("accuracy"), True, "percent"),
        Metric("top5", "top-5 accuracy", _alone("top5"), True, "percent"),
        Metric("balanced_accuracy", "balanced accuracy", _alone("balanced_accuracy"), True, "percent"),
        Metric("macro_f1", "macro F1", _alone("macro_f1"), True, "percent"),
        Metric("worst_class", "worst-class accuracy", _alone("worst_class"), True, "percent"),
        Metric("many", "accuracy of frequent classes", _alone("many"), True, "percent"),
        Metric("medium", "accuracy of medium classes", _alone("medium"), True, "percent"),
        Metric("few", "accuracy of rare classes", _alone("few"), True, "percent"),
        Metric("nll", "negative log-likelihood", _alone("nll"), False, "nats"),
        Metric("brier", "Brier score", _alone("brier"), False, ""),
        Metric("ece", "expected calibration error", _alone("ece"), False, "percent"),
    )
}


def evaluate(logits: Array, labels: Array, class_counts: Array) -> dict[str, float]:
    """Every metric of `METRICS`: logits (N, C), labels (N,), class_counts (C,) of the training data.

    All is computed where the logits are, and brought to the host once, checks included. Logits that are not finite are
    refused. The top-5 accuracy of five classes or fewer is 1 for any network.

    >>> scores = evaluate([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 1, 1], class_counts=[90, 10])
    >>> scores["balanced_accuracy"], scores["few"], scores["medium"]
    (0.75, 0.5, nan)
    """
    z = as_tensor(logits)
    y, n = _arrays.same_samples(z, as_tensor(labels)).to(z.device), _arrays.counts(as_tensor(class_counts))
    num_classes = z.shape[1]
    if len(n) != num_classes:
        raise ValueError(f"got logits with {num_classes} classes but class_counts of length {len(n)}")
    *scores, low, high, bad = _numbers(z, y, n.to(z.device)).tolist()
    _arrays.refuse_outside("labels", int(low), int(high), num_classes)
    _arrays.refuse_not_finite("logits", int(bad), len(y))
    return dict(zip(FORMULAS, scores, strict=True))


def _numbers(logits: Tensor, labels: Tensor, class_counts: Tensor) -> Tensor:
    """All metrics, the least and the largest label, and the number of rows without a finite largest logit."""
    num_classes = logits.shape[1]
    within = labels.clamp(0, num_classes - 1)  # an index outside would stop a GPU before it could be reported
    rows = max(1, calibration.CHUNK // num_classes)
    parts = [_samples(*part) for part in zip(logits.split(rows), within.split(rows), strict=True)]
    pred, top, in_top, confidence, nll, brier = (torch.cat(column) for column in zip(*parts, strict=True))
    right, samples = double(pred == within), totals(within, num_classes)
    hits = totals(within, num_classes, right)
    f1 = accuracy.f1(hits, totals(pred, num_classes), samples)
    recall = hits / samples
    group = accuracy.group_means(recall, accuracy.group_masks(class_counts))
    judged = Judged(right, in_top, confidence, nll, brier, recall, f1, group)
    scores = [formula(judged) for formula in FORMULAS.values()]
    return torch.stack([*scores, *map(double, (labels.min(), labels.max(), _arrays.not_finite(top)))])


def _samples(logits: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Of each sample: predicted class, its logit, then `in_top`, `confidence`, `nll` and `brier` of `Judged`."""
    z = double(logits)
    top, pred = z.max(dim=1)
    p = (z - top[:, None]).exp_()
    total = p.sum(dim=1)
    p /= total[:, None]
    nll = total.log() + (top - z.gather(1, labels[:, None]).squeeze(1))
    in_top = double(accuracy.rank_of_label(z, labels) < TOP)
    return pred, top, in_top, 1 / total, nll, calibration.distances_to_label(p, labels)
