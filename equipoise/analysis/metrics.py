"""The numbers kept of every run, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from . import _arrays, accuracy, calibration
from ._arrays import Floats, Ints

Function = Callable[[Floats, Ints, Floats], float]


@dataclass(frozen=True)
class Metric:
    """One number of a run. Of unit "percent" it is a fraction from 0 to 1; showing it times 100 is the report's."""

    name: str
    label: str
    function: Function
    higher_is_better: bool
    unit: Literal["percent", "nats"]


def _of_classes(function: Callable[[Ints, Ints, int], float]) -> Function:
    return lambda logits, labels, counts: function(logits.argmax(axis=1), labels, logits.shape[1])


def _of_group(name: str) -> Function:
    return lambda logits, labels, counts: accuracy.group_accuracy(logits.argmax(axis=1), labels, counts)[name]


def _top1(logits: Floats, labels: Ints, class_counts: Floats) -> float:
    return accuracy.top1(logits, labels)


def _nll(logits: Floats, labels: Ints, class_counts: Floats) -> float:
    return calibration.negative_log_likelihood(logits, labels)


def _ece(logits: Floats, labels: Ints, class_counts: Floats) -> float:
    return calibration.expected_calibration_error(np.exp(calibration.log_softmax(logits)), labels)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", _top1, True, "percent"),
        Metric("balanced_accuracy", "balanced accuracy", _of_classes(accuracy.balanced_accuracy), True, "percent"),
        Metric("worst_class", "worst-class accuracy", _of_classes(accuracy.worst_class_accuracy), True, "percent"),
        Metric("many", "accuracy of frequent classes", _of_group("many"), True, "percent"),
        Metric("medium", "accuracy of medium classes", _of_group("medium"), True, "percent"),
        Metric("few", "accuracy of rare classes", _of_group("few"), True, "percent"),
        Metric("nll", "negative log-likelihood", _nll, False, "nats"),
        Metric("ece", "expected calibration error", _ece, False, "percent"),
    )
}


def evaluate(logits: ArrayLike, labels: ArrayLike, class_counts: ArrayLike) -> dict[str, float]:
    """Every metric of `METRICS`: logits (N, C), labels (N,), class_counts (C,) of the training data.

    >>> scores = evaluate([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 1, 1], class_counts=[90, 10])
    >>> scores["balanced_accuracy"], scores["few"], scores["medium"]
    (0.75, 0.5, nan)
    """
    z, y = _arrays.logits_and_labels(logits, labels)
    n = _arrays.counts(class_counts)
    if len(n) != z.shape[1]:
        raise ValueError(f"got logits with {z.shape[1]} classes but class_counts of length {len(n)}")
    return {name: metric.function(z, y, n) for name, metric in METRICS.items()}
