"""How often the predicted class is the true one: over samples, over classes, over groups of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from . import _arrays
from ._arrays import Bools, Floats, Ints

MANY_ABOVE = 100  # Liu et al. 2019: many-shot classes have more training images than this,
FEW_BELOW = 20  # few-shot classes fewer than this, medium-shot classes 20 to 100


def top1(logits: ArrayLike, labels: ArrayLike) -> float:
    """Share of samples whose largest logit is at their label: logits (N, C), labels (N,). Ties go to the lower class.

    >>> top1([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0], [0.0, 5.0]], [0, 1, 1, 1])
    0.75
    """
    z, y = _arrays.logits_and_labels(logits, labels)
    return float((z.argmax(axis=1) == y).mean())


def per_class_accuracy(pred: ArrayLike, labels: ArrayLike, num_classes: int) -> Floats:
    """Share of each class's samples that were recognised (C,); NaN for a class without samples in `labels`.

    >>> per_class_accuracy([0, 0, 1], [0, 1, 1], num_classes=3)
    array([1. , 0.5, nan])
    """
    p, y = _arrays.predictions(pred, labels, num_classes)
    return _ratio(np.bincount(y[p == y], minlength=num_classes), np.bincount(y, minlength=num_classes))


def balanced_accuracy(pred: ArrayLike, labels: ArrayLike, num_classes: int) -> float:
    """Mean of `per_class_accuracy` over the classes present in `labels`: each class counts the same."""
    return _mean(per_class_accuracy(pred, labels, num_classes))


def worst_class_accuracy(pred: ArrayLike, labels: ArrayLike, num_classes: int) -> float:
    """Accuracy of the class recognised worst, among the classes present in `labels`."""
    return float(np.nanmin(per_class_accuracy(pred, labels, num_classes)))


def frequency_groups(class_counts: ArrayLike) -> dict[str, Bools]:
    """Which classes have many, a medium number of, and few training images: three masks (C,) that share no class.

    The usual limits: many > 100, medium 20 to 100, few < 20 images. If they leave one of the groups empty, the classes
    are instead put in order of falling count (equal counts: lower class first) and cut into three runs as even as can
    be, the earlier run one larger where it does not divide: 10 classes give 4, 3, 3. So no group is empty from three
    classes on. Of two classes the more frequent is "many" and the other "few"; a single class is "many".
    Classes of equal count may then fall in different groups: of balanced data the groups say nothing.

    >>> {name: mask.nonzero()[0].tolist() for name, mask in frequency_groups([500, 100, 7, 120]).items()}
    {'many': [0, 3], 'medium': [1], 'few': [2]}
    >>> {name: mask.nonzero()[0].tolist() for name, mask in frequency_groups([60, 900, 300, 60]).items()}
    {'many': [1, 2], 'medium': [0], 'few': [3]}
    """
    n = _arrays.counts(class_counts)
    many, few = n > MANY_ABOVE, n < FEW_BELOW
    groups = {"many": many, "medium": ~many & ~few, "few": few}
    if all(mask.any() for mask in groups.values()):
        return groups
    order = np.argsort(-n, kind="stable")
    cuts = [order[:1], order[:0], order[1:]] if len(n) < 3 else np.array_split(order, 3)
    return {name: np.isin(np.arange(len(n)), cut) for name, cut in zip(groups, cuts, strict=True)}


def group_accuracy(pred: ArrayLike, labels: ArrayLike, class_counts: ArrayLike) -> dict[str, float]:
    """Mean of `per_class_accuracy` within each of `frequency_groups`; NaN where `labels` has no class of the group."""
    groups = frequency_groups(class_counts)
    accuracy = per_class_accuracy(pred, labels, len(groups["many"]))
    return {name: _mean(accuracy[mask]) for name, mask in groups.items()}


def confusion_matrix(pred: ArrayLike, labels: ArrayLike, num_classes: int) -> Ints:
    """Number of samples of true class i predicted as class j, at [i, j] of (C, C).

    >>> confusion_matrix([0, 0, 1], [0, 1, 1], num_classes=2)
    array([[1, 0],
           [1, 1]])
    """
    p, y = _arrays.predictions(pred, labels, num_classes)
    return np.bincount(y * num_classes + p, minlength=num_classes**2).reshape(num_classes, num_classes)


def classification_ratio(pred: ArrayLike, labels: ArrayLike, num_classes: int) -> Floats:
    """Samples predicted as class c over samples that are of class c (C,); NaN for a class without samples.

    Above 1 the network calls too many things c. On the training set this is the ratio of the MFW paper.

    >>> classification_ratio([0, 0, 0, 1], [0, 0, 1, 1], num_classes=2)
    array([1.5, 0.5])
    """
    p, y = _arrays.predictions(pred, labels, num_classes)
    return _ratio(np.bincount(p, minlength=num_classes), np.bincount(y, minlength=num_classes))


def _ratio(part: Ints, whole: Ints) -> Floats:
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
