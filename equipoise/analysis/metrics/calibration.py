"""Whether the probabilities mean what they say."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core import checks
from .. import _arrays
from .._arrays import add_at, totals
from .._kinds import Array, double, either_kind
from .accuracy import GROUPS, group_masks

CHUNK = 2**18  # numbers worked on at once: they stay in a CPU's cache, and a GPU is busy with them


@either_kind
def log_softmax(logits: Array) -> Any:
    """Logarithms of the softmax probabilities, in float64: (N, C) -> (N, C). Any finite logits, however large.

    >>> log_softmax([[0.0, 0.0]]).round(4)
    array([[-0.6931, -0.6931]])
    """
    return double(_arrays.judged_rows(logits)).log_softmax(dim=1)


@either_kind
def sigmoid_log_probabilities(logits: Array) -> Any:
    """Logarithms of `sigmoid_probabilities`: logits for every function here that takes some, as softmax keeps them.

    >>> round(negative_log_likelihood(sigmoid_log_probabilities([[0.0, 0.0], [0.0, 0.0]]), [0, 1]), 4)
    0.6931
    """
    return F.logsigmoid(double(_arrays.judged_rows(logits))).log_softmax(dim=1)


@either_kind
def sigmoid_probabilities(logits: Array) -> Any:
    r"""Probabilities of a network with one sigmoid per class: each divided by the sum of its row, (N, C) -> (N, C).

    .. math:: p_c = \sigma(z_c) \Big/ \sum_k \sigma(z_k)

    In logarithms, so that a row of very low logits, whose sigmoids are all 0 in floating point, has its answer too.

    >>> sigmoid_probabilities([[0.0, 0.0], [-1000.0, -1001.0]]).round(3)
    array([[0.5  , 0.5  ],
           [0.731, 0.269]])

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? 2021.
    """
    return sigmoid_log_probabilities(logits).exp()


@either_kind
def negative_log_likelihood(logits: Array, labels: Array) -> Any:
    """Mean over samples of -log p(label), in nats: logits (N, C), labels (N,).

    >>> round(negative_log_likelihood([[0.0, 0.0], [2.0, 0.0]], [0, 0]), 4)
    0.41
    """
    z, y = _arrays.logits_and_labels(logits, labels)
    return -double(z).log_softmax(dim=1).gather(1, y[:, None]).mean()


@either_kind
def brier_score(probs: Array, labels: Array) -> Any:
    """Mean over samples of the squared distance to the one-hot label, summed over classes: 0 (perfect) to 2.

    >>> brier_score([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.625
    """
    p, y = _arrays.probabilities_and_labels(probs, labels)
    return distances_to_label(double(p), y).mean()


def distances_to_label(p: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of each row of `p` (N, C), float64, to the one-hot label: (N,)."""
    label = labels[:, None]
    return p.scatter_add(1, label, torch.full_like(label, -1, dtype=p.dtype)).square().sum(dim=1)


@either_kind
def expected_calibration_error(probs: Array, labels: Array, bins: int = 15) -> Any:
    r"""How far confidence is from accuracy, on average over samples: probs (N, C), labels (N,).

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{N} \, |\mathrm{accuracy}_b - \mathrm{confidence}_b|

    The confidence of a sample is its largest probability; bin b of B holds confidences in ((b-1)/B, b/B], and the first
    bin a confidence of 0 too. Bins without samples add nothing.

    >>> expected_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25

    Reference: Guo, Pleiss, Sun, Weinberger. On Calibration of Modern Neural Networks. ICML 2017.
    """
    confidence, right = top_label(probs, labels)
    return mean_gap(even_bins(confidence, bins), right - confidence, bins)


@either_kind
def adaptive_calibration_error(probs: Array, labels: Array, bins: int = 15) -> Any:
    """`expected_calibration_error` with bins that hold as many samples each, as near as can be: probs (N, C).

    A sample with k of the N confidences below its own is in bin floor(B k / N). So the sizes differ by one at most
    where all confidences differ, equal ones stay together, and the order of the samples does not matter.

    >>> round(adaptive_calibration_error([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3]], [0, 0, 1, 1], bins=2), 4)
    0.4

    Reference: Nguyen, O'Connor. Posterior Calibration and Exploratory Analysis for NLP Models. EMNLP 2015.
    """
    confidence, right = top_label(probs, labels)
    return mean_gap(full_bins(confidence, bins), right - confidence, bins)


@either_kind
def classwise_calibration_error(probs: Array, labels: Array, bins: int = 15) -> Any:
    r"""Calibration error of every class's probability, not of the largest alone: mean over classes, probs (N, C).

    .. math:: \frac{1}{C} \sum_c \sum_b \frac{n_{bc}}{N} \, |\mathrm{share}_{bc} - \mathrm{probability}_{bc}|

    Bin b of class c holds the samples whose probability of c is in it, of which a share is of class c; a class
    without samples counts too, for what it was given.

    >>> classwise_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25

    Reference: Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach. Beyond Temperature Scaling. NeurIPS 2019.
    """
    checks.at_least("bins", bins, 1)
    p, y = _arrays.probabilities_and_labels(probs, labels)
    n, num_classes = p.shape
    gaps = torch.zeros(bins * num_classes, dtype=torch.float64, device=p.device)
    of_class = torch.arange(num_classes, device=p.device)
    rows = max(1, CHUNK // num_classes)
    for part, label in zip(p.split(rows), y.split(rows), strict=True):
        given = double(part)
        place = even_bins(given, bins) * num_classes + of_class
        add_at(gaps, place.flatten(), (double(label[:, None] == of_class) - given).flatten())
    return gaps.abs().sum() / (n * num_classes)


@either_kind
def group_calibration_error(probs: Array, labels: Array, class_counts: Array, bins: int = 15) -> dict[str, Any]:
    """`expected_calibration_error` of what is called a frequent, a medium and a rare class; see `frequency_groups`.

    The samples are grouped by the class predicted, the one the confidence is about: a network that is calibrated has 0
    in each group, which it would not if they were grouped by their label. NaN for a group of which none is predicted.

    >>> group_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1], class_counts=[90, 10])
    {'many': 0.25, 'medium': nan, 'few': nan}
    """
    masks = group_masks(_arrays.counts(class_counts))
    if masks.shape[1] != probs.shape[-1]:
        raise ValueError(f"got probs with {probs.shape[-1]} classes but class_counts of length {masks.shape[1]}")
    confidence, right = top_label(probs, labels)
    members = double(masks[:, probs.argmax(dim=1)])
    place, gap = even_bins(confidence, bins), right - confidence
    errors = [totals(place, bins, own * gap).abs().sum() / own.sum() for own in members]
    return dict(zip(GROUPS, errors, strict=True))


def top_label(probs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The largest probability of each sample, and whether (1 or 0) it is the label's: both (N,), float64."""
    p, y = _arrays.probabilities_and_labels(probs, labels)
    confidence, pred = p.max(dim=1)
    return double(confidence), double(pred == y)


def even_bins(confidence: Tensor, bins: int) -> Tensor:
    """Which of `bins` equal parts of (0, 1] each value is in; 0 is in the first."""
    checks.at_least("bins", bins, 1)
    # not linspace, whose third edge of ten is a little above 0.3
    inner_edges = torch.arange(1, bins, dtype=torch.float64, device=confidence.device) / bins
    return torch.bucketize(confidence, inner_edges)


def full_bins(confidence: Tensor, bins: int) -> Tensor:
    """Which of `bins` parts of equally many samples each value (N,) is in."""
    checks.at_least("bins", bins, 1)
    below = torch.searchsorted(confidence.sort().values, confidence)
    return below * bins // len(confidence)


def mean_gap(place: Tensor, gap: Tensor, bins: int) -> Tensor:
    """Calibration error of samples (N,) in bins; n_b cancels: n_b / N · |Σ right / n_b - Σ confidence / n_b|."""
    return totals(place, bins, gap).abs().sum() / len(gap)
