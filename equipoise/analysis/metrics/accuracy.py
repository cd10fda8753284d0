"""How often the predicted class is the true one: over samples, over classes, over groups of classes.

Arrays are numpy or torch, and answered in the same kind; the numbers of classes without samples are NaN, not known.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...core import checks
from .. import _arrays
from .._arrays import totals
from .._kinds import Array, double, either_kind

MANY_ABOVE = 100  # Liu et al. 2019: many-shot classes have more training images than this,
FEW_BELOW = 20  # few-shot classes fewer than this, medium-shot classes 20 to 100
GROUPS = ("many", "medium", "few")


@either_kind
def top1(logits: Array, labels: Array) -> Any:
    """Share of samples whose largest logit is at their label: logits (N, C), labels (N,). Ties go to the lower class.

    >>> top1([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0], [0.0, 5.0]], [0, 1, 1, 1])
    0.75
    """
    z, y = _arrays.logits_and_labels(logits, labels)
    return double(z.argmax(dim=1) == y).mean()


@either_kind
def top_k_accuracy(logits: Array, labels: Array, k: int = 5) -> Any:
    """Share of samples whose label is among their k largest logits: logits (N, C), labels (N,).

    Ties go to the lower class, so that k = 1 is `top1`; with k of C or more it is 1.

    >>> top_k_accuracy([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], [1, 2], k=2)
    0.5
    """
    checks.whole("k", k, 1)
    z, y = _arrays.logits_and_labels(logits, labels)
    return double(rank_of_label(z, y) < k).mean()


def rank_of_label(logits: Tensor, labels: Tensor) -> Tensor:
    """How many classes are ahead of the label (N,): those of a larger logit, and lower ones of the same."""
    own = logits.gather(1, labels[:, None])
    lower = torch.arange(logits.shape[1], device=logits.device) < labels[:, None]
    return ((logits > own) | ((logits == own) & lower)).sum(dim=1)


@either_kind
def per_class_accuracy(pred: Array, labels: Array, num_classes: int) -> Any:
    """Share of each class's samples that were recognised (C,); NaN for a class without samples in `labels`.

    >>> per_class_accuracy([0, 0, 1], [0, 1, 1], num_classes=3)
    array([1. , 0.5, nan])
    """
    p, y = _arrays.predictions(pred, labels, num_classes)
    return totals(y, num_classes, p == y) / totals(y, num_classes)


@either_kind
def balanced_accuracy(pred: Array, labels: Array, num_classes: int) -> Any:
    """Mean of `per_class_accuracy` over the classes present in `labels`: each class counts the same."""
    return per_class_accuracy(pred, labels, num_classes).nanmean()


@either_kind
def worst_class_accuracy(pred: Array, labels: Array, num_classes: int) -> Any:
    """Accuracy of the class recognised worst, among the classes present in `labels`."""
    return least(per_class_accuracy(pred, labels, num_classes))


def least(values: Tensor) -> Tensor:
    """The smallest of those values that are known."""
    return values.nan_to_num(nan=math.inf).min()


@either_kind
def accuracy_under_prior(pred: Array, labels: Array, prior: Array) -> Any:
    r"""Accuracy to expect where class c makes up the share `prior[c]` of what comes: pred and labels (N,), prior (C,).

    .. math:: \sum_c \pi_c \, \mathrm{accuracy}_c

    An even prior gives `balanced_accuracy`, the shares of `labels` the plain accuracy. What holds is that each class
    looks as it does in the test set, and only its share differs. A class that is to come but has no samples in
    `labels` is an error: nothing is known of it.

    >>> accuracy_under_prior([0, 0, 1, 0], [0, 0, 1, 1], prior=[0.75, 0.25])
    0.875
    """
    share = _checked_prior(prior)
    accuracy = per_class_accuracy(pred, labels, len(share))
    unknown = ((share > 0) & accuracy.isnan()).nonzero().flatten().tolist()
    if unknown:
        raise ValueError(f"prior expects class {unknown}, of which labels has no sample; give those a share of 0")
    return (share * accuracy.nan_to_num()).sum()


def _checked_prior(prior: Tensor) -> Tensor:
    share = double(prior)
    if share.dim() != 1 or not len(share):
        raise ValueError(f"prior must be one share for each class, not a value of shape {tuple(share.shape)}")
    if not bool((share >= 0).all()) or not math.isclose(float(share.sum()), 1, abs_tol=1e-6):
        raise ValueError(f"prior must be shares, 0 or more, that sum to 1, not {share.tolist()}; divide by their sum")
    return share


@either_kind
def frequency_groups(class_counts: Array) -> dict[str, Any]:
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
    return dict(zip(GROUPS, group_masks(_arrays.counts(class_counts)), strict=True))


def group_masks(n: Tensor) -> Tensor:
    """The masks of `frequency_groups` as one (3, C); without a wait for the device."""
    by_limit = torch.stack([n > MANY_ABOVE, (n >= FEW_BELOW) & (n <= MANY_ABOVE), n < FEW_BELOW])
    size = len(n)
    place = (-n).argsort(stable=True).argsort()  # 0 for the most frequent class
    run = place * 3 // size if size >= 3 else place * 2
    by_order = run == torch.arange(3, device=n.device)[:, None]
    return torch.where(by_limit.any(dim=1).all(), by_limit, by_order)


@either_kind
def group_accuracy(pred: Array, labels: Array, class_counts: Array) -> dict[str, Any]:
    """Mean of `per_class_accuracy` within each of `frequency_groups`; NaN where `labels` has no class of the group."""
    masks = group_masks(_arrays.counts(class_counts))
    accuracy = per_class_accuracy(pred, labels, masks.shape[1])
    return dict(zip(GROUPS, group_means(accuracy, masks), strict=True))


def group_means(values: Tensor, masks: Tensor) -> Tensor:
    """Mean of those of `values` (C,) that are known, within each mask of (G, C)."""
    return torch.where(masks, values, torch.nan).nanmean(dim=1)


@either_kind
def confusion_matrix(pred: Array, labels: Array, num_classes: int) -> Any:
    """Number of samples of true class i predicted as class j, at [i, j] of (C, C).

    >>> confusion_matrix([0, 0, 1], [0, 1, 1], num_classes=2)
    array([[1, 0],
           [1, 1]])
    """
    p, y = _arrays.predictions(pred, labels, num_classes)
    return totals(y * num_classes + p, num_classes**2).long().reshape(num_classes, num_classes)


@either_kind
def macro_f1(pred: Array, labels: Array, num_classes: int) -> Any:
    r"""Mean over classes of F1, the harmonic mean of precision and recall: pred and labels (N,).

    .. math:: F_c = \frac{2 \, \#\{\hat y = y = c\}}{\#\{\hat y = c\} + \#\{y = c\}}

    A class that is neither predicted nor there is left out of the mean (0/0); one that is only predicted, or only
    there, counts 0. So do scikit-learn and torchmetrics.

    >>> macro_f1([0, 0, 1], [0, 1, 1], num_classes=3)
    0.6666666666666666
    """
    p, y = _arrays.predictions(pred, labels, num_classes)
    return f1(totals(y, num_classes, p == y), totals(p, num_classes), totals(y, num_classes)).nanmean()


def f1(hits: Tensor, predicted: Tensor, samples: Tensor) -> Tensor:
    """F1 of each class (C,); NaN for one that is neither predicted nor there."""
    return 2 * hits / (predicted + samples)


@either_kind
def classification_ratio(pred: Array, labels: Array, num_classes: int) -> Any:
    """Samples predicted as class c over samples that are of class c (C,); NaN for a class without samples.

    Above 1 the network calls too many things c. On the training set this is the ratio of the MFW paper.

    >>> classification_ratio([0, 0, 0, 1], [0, 0, 1, 1], num_classes=2)
    array([1.5, 0.5])
    """
    p, y = _arrays.predictions(pred, labels, num_classes)
    samples = totals(y, num_classes)
    return torch.where(samples > 0, totals(p, num_classes) / samples, torch.nan)  # predicted but not there: inf
