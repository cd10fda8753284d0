"""Whether the probabilities mean what they say."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from . import _arrays
from ._arrays import Floats


def log_softmax(logits: ArrayLike) -> Floats:
    """Logarithms of the softmax probabilities, in float64: (N, C) -> (N, C). Any finite logits, however large.

    >>> log_softmax([[0.0, 0.0]]).round(4)
    array([[-0.6931, -0.6931]])
    """
    z = np.asarray(logits).astype(np.float64, copy=False)
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def negative_log_likelihood(logits: ArrayLike, labels: ArrayLike) -> float:
    """Mean over samples of -log p(label), in nats: logits (N, C), labels (N,).

    >>> round(negative_log_likelihood([[0.0, 0.0], [2.0, 0.0]], [0, 0]), 4)
    0.41
    """
    z, y = _arrays.logits_and_labels(logits, labels)
    return float(-log_softmax(z)[np.arange(len(y)), y].mean())


def expected_calibration_error(probs: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    r"""How far confidence is from accuracy, on average over samples: probs (N, C), labels (N,).

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{N} \, |\mathrm{accuracy}_b - \mathrm{confidence}_b|

    The confidence of a sample is its largest probability; bin b of B holds confidences in ((b-1)/B, b/B], and the first
    bin a confidence of 0 too. Bins without samples add nothing.

    >>> expected_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25

    Reference: Guo, Pleiss, Sun, Weinberger. On Calibration of Modern Neural Networks. ICML 2017.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    p, y = _arrays.probabilities_and_labels(probs, labels)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    inner_edges = np.arange(1, bins) / bins  # not linspace, whose third edge of ten is a little above 0.3
    b = np.searchsorted(inner_edges, confidence, side="left")
    # n_b cancels: n_b / N * |sum right / n_b - sum confidence / n_b|
    return float(np.abs(np.bincount(b, weights=right - confidence, minlength=bins)).sum() / len(y))


def brier_score(probs: ArrayLike, labels: ArrayLike) -> float:
    """Mean over samples of the squared distance to the one-hot label, summed over classes: 0 (perfect) to 2.

    >>> brier_score([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.625
    """
    p, y = _arrays.probabilities_and_labels(probs, labels)
    return float(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean())
