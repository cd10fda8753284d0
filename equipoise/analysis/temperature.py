"""The temperature at which probabilities fit held-out labels best."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from . import _arrays
from ._kinds import Array, double, either_kind
from .calibration import CHUNK

RANGE = 1e4  # T is sought from the largest difference within a row over this to the same times this


@either_kind
def fit_temperature(logits: Array, labels: Array) -> Any:
    r"""The T > 0 at which softmax(logits / T) is most likely to have given the labels: logits (N, C), labels (N,).

    .. math:: T = \arg\min_{T > 0} \frac{1}{N} \sum_i \log \sum_c \exp \frac{z_{ic} - z_{i y_i}}{T}

    That is convex in 1/T, so its slope has one zero at most: Newton's step where it stays between the last points on
    either side, else their geometric middle, to 12 digits. Where there is no optimum the answer is defined too. If
    every label has the largest logit of its row, T would go to 0: it stops where the slope is 0 in floating point. If
    the logits are no better than chance, T would go to infinity: it stops at 10,000 times the largest difference within
    a row. If all logits of each row are the same, any T does, and it is 1. The post-hoc method "temperature" of
    `equipoise.imbalance` finds the same.

    >>> round(fit_temperature([[2.0, 0.0]] * 4, [0, 0, 0, 1]), 6)  # right 3 times of 4: 2 / log(0.75 / 0.25)
    1.820478

    Reference: Guo, Pleiss, Sun, Weinberger. On Calibration of Modern Neural Networks. ICML 2017.
    """
    z, y = _arrays.logits_and_labels(logits, labels)
    gap = double(z) - double(z.gather(1, y[:, None]))
    size = float(gap.abs().max())
    if not math.isfinite(size):
        raise ValueError("logits must be finite to fit a temperature")
    return gap.new_tensor(1 / _sharpest(gap, size) if size else 1.0)


def _sharpest(gap: Tensor, size: float) -> float:
    """The s = 1/T of least mean log Σ exp(s · gap): gap (N, C), largest in size `size`."""
    low, high = 1 / (RANGE * size), RANGE / size
    s = min(max(1.0, low), high)
    for _ in range(200):
        slope, curvature = _derivatives(gap, s)
        if slope == 0:
            break
        low, high = (s, high) if slope < 0 else (low, s)
        newton = s - slope / curvature if curvature > 0 else math.inf
        previous, s = s, newton if low < newton < high else math.sqrt(low * high)
        if abs(s - previous) <= 1e-12 * s:
            break
    return s


def _derivatives(gap: Tensor, s: float) -> tuple[float, float]:
    """First and second derivative in s: the mean and the variance of gap under softmax, each meaned over samples."""
    total = torch.zeros(2, dtype=gap.dtype, device=gap.device)
    for part in gap.split(max(1, CHUNK // gap.shape[1])):
        p = (s * part).softmax(dim=1)
        mean = (p * part).sum(dim=1, keepdim=True)
        total += torch.stack([mean.sum(), (p * (part - mean) ** 2).sum()])
    slope, curvature = (total / len(gap)).tolist()
    return slope, curvature
