"""What a user wants of a classifier, as the one number of a run that the comparison is about.

Metrics of `METRICS` ask the same of every study. Those here depend on what the user says of the classes: how often each
will come, or what each mistake costs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core import EquipoiseError, known
from ...core.words import shown
from .. import _arrays
from .._arrays import Floats, Ints
from .._kinds import Array, to_numpy
from ..metrics.accuracy import per_class_accuracy
from ..metrics.scores import METRICS, Metric

# priorities that are a word, and the metric each means
WORDS = {
    "balanced": "balanced_accuracy",
    "natural": "natural_accuracy",
    "worst_class": "worst_class",
    "calibration": "ece",
}


def _depends(logits: Array, labels: Array, class_counts: Array) -> float:
    raise ValueError("this score depends on the study's priority: call priority.score")


# scores that a run has only where the study's priority asks for them
PRIORITY_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("natural_accuracy", "accuracy at natural class frequencies", _depends, True, "percent"),
        Metric("prior_accuracy", "accuracy at the given class frequencies", _depends, True, "percent"),
        Metric("cost", "mean cost of a prediction", _depends, False, ""),
    )
}


ALL_METRICS = METRICS | PRIORITY_METRICS


@dataclass(frozen=True)
class Priority:
    """The name of the score that decides, and what it needs to know of the classes; `read_priority` makes one.

    `prior` is "balanced", "natural", or a weight for each class by name or in order. `costs` has a row for each true
    class in order; or by names only what differs from 1 for a mistake and 0 for being right.
    """

    metric: str
    prior: str | Mapping[str, float] | Sequence[float] = "balanced"
    costs: Mapping[str, Mapping[str, float]] | Sequence[Sequence[float]] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``Priority(**data)`` reads it."""
        return asdict(self)


def read_priority(plain: Any) -> Priority:
    """A priority as a study's TOML has it: one of `WORDS`, or a table with `prior`, `costs` or both.

    >>> read_priority("worst_class").metric, read_priority({"prior": {"cat": 3, "dog": 1}}).metric
    ('worst_class', 'prior_accuracy')
    """
    if not isinstance(plain, Mapping):
        word = known("priority", plain, WORDS)
        return Priority(WORDS[word], "natural" if word == "natural" else "balanced")
    if not plain or not plain.keys() <= {"prior", "costs"}:
        given = ", ".join(shown(name) for name in plain) or "nothing"
        raise EquipoiseError(f"[priority] has a prior, costs or both, not {given}")
    prior, costs = plain.get("prior", "balanced"), plain.get("costs")
    if isinstance(prior, str):
        known("prior", prior, ("balanced", "natural"))
    elif not _are_weights(prior) or not any(_values(prior)):
        raise EquipoiseError(f"prior must give each class a weight of 0 or more, not {shown(prior)}")
    if costs is None:
        return Priority(WORDS[prior] if isinstance(prior, str) else "prior_accuracy", prior)
    if not (isinstance(costs, Mapping | list) and costs and all(map(_are_weights, _values(costs)))):
        raise EquipoiseError(f"costs must have a row of numbers, 0 or more, for each true class, not {shown(costs)}")
    return Priority("cost", prior, costs)


def check_classes(priority: Priority, class_names: Sequence[str]) -> None:
    """Refuse a prior or costs that do not fit these classes."""
    _weights(priority, np.ones(len(class_names)), class_names)
    if priority.costs is not None:
        _cost_matrix(priority.costs, class_names)


def score(
    logits: Array,
    labels: Array,
    class_counts: Array,
    priority: Priority,
    class_names: Sequence[str] | None = None,
) -> float:
    r"""The score of one run: logits (N, C), labels (N,), class_counts (C,) of the training data.

    With π_c the prior of class c, r_c its accuracy, and k(y, ŷ) the cost of predicting ŷ where y is true:

    .. math:: \mathrm{accuracy} = \sum_c \pi_c r_c \qquad
        \mathrm{cost} = \sum_c \pi_c \, \mathrm{mean}_{i: y_i = c} \, k(c, \hat y_i)

    The prior "natural" is that of the training data, whatever the frequencies in `labels`. Predictions are the largest
    logit. A class without samples is left out and the prior of the others scaled up. Names are needed where the
    priority uses them.

    >>> logits, labels = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 0, 1, 1]
    >>> score(logits, labels, [90, 10], read_priority({"prior": {"cat": 3, "dog": 1}}), ["cat", "dog"])
    0.875
    >>> score(logits, labels, [90, 10], read_priority({"costs": {"dog": {"cat": 10.0}}}), ["cat", "dog"])
    2.5
    """
    z, y = _arrays.logits_and_labels(logits, labels)
    counts = _arrays.counts(class_counts)
    if len(counts) != z.shape[1]:
        raise ValueError(f"got logits with {z.shape[1]} classes but class_counts of length {len(counts)}")
    if priority.metric in METRICS:
        return METRICS[priority.metric].function(z, y, counts)
    names = [str(c) for c in range(len(counts))] if class_names is None else list(class_names)
    predicted, y, counts = to_numpy((z.argmax(axis=1), y, counts))
    per_class = per_class_accuracy(predicted, y, len(counts))
    if priority.costs is not None:
        paid = _cost_matrix(priority.costs, names)[y, predicted]
        present = np.bincount(y, minlength=len(counts))
        per_class = np.bincount(y, paid, len(counts)) / np.where(present, present, np.nan)
    weights = np.where(np.isnan(per_class), 0, _weights(priority, counts, names))
    return float(np.nansum(weights * per_class) / weights.sum()) if weights.any() else float("nan")


class ImageValues(NamedTuple):
    """What each test image adds to a score: the value (N,) and stratum (N,) of each, and the share of each stratum.

    The score is Σ_c shares[c] · mean value of stratum c, the shares of those that are there scaled to sum to 1.
    """

    values: Floats
    strata: Ints
    shares: Floats


def image_values(
    logits: Array,
    labels: Array,
    class_counts: Array,
    priority: Priority,
    class_names: Sequence[str] | None = None,
) -> ImageValues | None:
    """The same score as `score`, image by image; None for a score that is no mean over images.

    Accuracy has one stratum; where classes have shares of their own, each is a stratum.

    >>> logits, labels = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 0, 1, 1]
    >>> found = image_values(logits, labels, [90, 10], read_priority("balanced"))
    >>> found.values.tolist(), found.strata.tolist(), found.shares.tolist()
    ([1.0, 1.0, 1.0, 0.0], [0, 0, 1, 1], [1.0, 1.0])
    """
    if priority.metric not in ("accuracy", "balanced_accuracy", *PRIORITY_METRICS):
        return None
    z, y, counts = to_numpy((*_arrays.logits_and_labels(logits, labels), _arrays.counts(class_counts)))
    names = [str(c) for c in range(len(counts))] if class_names is None else list(class_names)
    predicted = z.argmax(axis=1)
    if priority.metric == "accuracy":
        return ImageValues((predicted == y).astype(np.float64), np.zeros_like(y), np.ones(1))
    if priority.costs is not None:
        values = _cost_matrix(priority.costs, names)[y, predicted]
    else:
        values = (predicted == y).astype(np.float64)
    return ImageValues(values, y, _weights(priority, counts, names))


def _weights(priority: Priority, class_counts: Floats, names: Sequence[str]) -> Floats:
    """The prior (C,), not yet scaled."""
    prior = priority.prior
    if isinstance(prior, str):
        return class_counts if prior == "natural" else np.ones(len(class_counts))
    if isinstance(prior, Mapping):
        _check_names("prior", prior, names)
        if missing := [name for name in names if name not in prior]:
            raise EquipoiseError(f"prior lacks the class {missing[0]!r}; give it 0 if it never comes")
        prior = [prior[name] for name in names]
    if len(prior) != len(class_counts):
        raise EquipoiseError(f"prior has {len(prior)} weights for {len(class_counts)} classes")
    return np.array(prior, dtype=np.float64)


def _cost_matrix(costs: Mapping[str, Mapping[str, float]] | Sequence[Sequence[float]], names: Sequence[str]) -> Floats:
    """The costs (C, C) by true and predicted class."""
    if not isinstance(costs, Mapping):
        if [len(row) for row in costs] != [len(names)] * len(names):
            raise EquipoiseError(f"costs must have {len(names)} rows of {len(names)} numbers, one for each class")
        return np.array(costs, dtype=np.float64)
    _check_names("costs", costs, names)
    matrix = 1.0 - np.eye(len(names))
    for true, row in costs.items():
        _check_names(f"costs.{true}", row, names)
        for predicted, cost in row.items():
            matrix[names.index(true), names.index(predicted)] = cost
    return matrix


def _check_names(where: str, given: Collection[str], names: Sequence[str]) -> None:
    for name in given:
        known(f"class of {where}", name, names)


def _values(given: Any) -> list[Any]:
    return list(given.values() if isinstance(given, Mapping) else given)


def _are_weights(given: Any) -> bool:
    """Whether these are numbers, 0 or more, by name or in order."""
    if not isinstance(given, Mapping | list | tuple) or not given:
        return False
    return all(type(v) in (int, float) and 0 <= v <= 1e300 for v in _values(given))
