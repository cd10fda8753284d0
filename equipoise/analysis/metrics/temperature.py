"""The temperature at which probabilities fit held-out labels best."""

from __future__ import annotations

from typing import Any

import torch

from ... import imbalance
from .. import _arrays
from .._kinds import Array, either_kind


@either_kind
def fit_temperature(logits: Array, labels: Array) -> Any:
    r"""The T > 0 at which softmax(logits / T) is most likely to have given the labels: logits (N, C), labels (N,).

    .. math:: T = \arg\min_{T > 0} \frac{1}{N} \sum_i \log \sum_c \exp \frac{z_{ic} - z_{i y_i}}{T}

    That is convex in 1/T, so its slope has one zero at most: Newton's step where it stays between the last points on
    either side, else their geometric middle, to 12 digits. Where there is no optimum the answer is defined too. If
    every label has the largest logit of its row, T would go to 0: it stops where the slope is 0 in floating point. If
    the logits are no better than chance, T would go to infinity: it stops at 10,000 times the largest difference within
    a row. If all logits of each row are the same, any T does, and it is 1. It is what the post-hoc method "temperature"
    fits (`equipoise.imbalance`), for arrays of either kind.

    >>> round(fit_temperature([[2.0, 0.0]] * 4, [0, 0, 0, 1]), 6)  # right 3 times of 4: 2 / log(0.75 / 0.25)
    1.820478

    Reference: Guo, Pleiss, Sun, Weinberger. On Calibration of Modern Neural Networks. ICML 2017.
    """
    z, y = _arrays.logits_and_labels(logits, labels)
    return torch.tensor(imbalance.fit_temperature(z, y), dtype=torch.float64, device=z.device)
