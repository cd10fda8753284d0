"""Temperature scaling."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor

from ...core import Output, checks, full_precision, register
from .._base import Posthoc

CHUNK = 2**18  # logits worked on at once: they stay in a CPU's cache


def fit_temperature(
    logits: Tensor, target: Tensor, weight: Tensor | None = None, offset: Tensor | None = None
) -> float:
    """The T > 0 at which softmax(logits / T) has the least negative log-likelihood: logits (N, C), target (N,).

    With `weight` (N,) each sample counts as much as it says. With an `offset` (C,) it is softmax(logits / T + offset):
    a prior that is known, and that T leaves alone.

    That is convex in 1/T, so its slope has one zero: Newton's step where it stays between the last points on
    either side, else the middle of these. Without an optimum (all predictions right, or worse than chance) T ends
    where the slope vanishes to rounding, or at 1e-4 or 1e4 times the largest difference of a row.
    """
    checks.logits_and_target("fit_temperature", logits, target)
    if not len(target):
        raise ValueError("a temperature is fitted on held-out outputs, and there are none")
    gap = logits.detach().double()
    gap = gap - gap.gather(1, target[:, None])  # the row's own label at 0: the loss is log of the sum of exp(gap / T)
    size = float(gap.abs().max())
    if not math.isfinite(size):
        raise ValueError("logits must be finite to fit a temperature")
    if size == 0:
        return 1.0
    low, high = 1e-4 / size, 1e4 / size  # of 1/T
    s = min(max(1.0, low), high)
    for _ in range(200):
        slope, curvature = _derivatives(gap, s, weight, offset)
        if slope == 0:
            break
        low, high = (s, high) if slope < 0 else (low, s)
        newton = s - slope / curvature if curvature > 0 else math.inf
        previous, s = s, newton if low < newton < high else math.sqrt(low * high)
        if abs(s - previous) <= 1e-12 * s:
            break
    return 1 / s


def _derivatives(
    gap: Tensor, s: float, weight: Tensor | None = None, offset: Tensor | None = None
) -> tuple[float, float]:
    """First and second derivative of mean(logsumexp(s · gap + offset)) in s: mean and variance of gap under softmax.

    The offset of a row's own label changes no derivative, so that it need not be taken off.
    """
    total = torch.zeros(2, dtype=gap.dtype, device=gap.device)
    beside = 0.0 if offset is None else offset.to(gap)
    rows = max(1, CHUNK // gap.shape[1])
    weights = (None,) * -(-len(gap) // rows) if weight is None else weight.to(gap)[:, None].split(rows)
    for part, w in zip(gap.split(rows), weights, strict=True):
        p = (s * part + beside).softmax(1)
        mean = (p * part).sum(1, keepdim=True)
        spread = p * (part - mean) ** 2
        if w is not None:
            mean, spread = w * mean, w * spread
        total += torch.stack([mean.sum(), spread.sum()])
    slope, curvature = (total / len(gap)).tolist()
    return slope, curvature


@register("temperature", kind="posthoc", year=2017, arxiv="1706.04599")
class Temperature(Posthoc):
    r"""Divides logits by one number, chosen on held-out data, so that probabilities are calibrated.

    .. math:: z / T, \qquad T = \arg\min_{T > 0} \textstyle\sum_i -\log \mathrm{softmax}(z_i / T)_{y_i}

    Predictions do not change. `fit` must be called first; T is then in `temperature_`.

    Differs from the paper: nothing known. The optimum is found to rounding; the best-known implementation takes 50
    steps of L-BFGS with a small rate and stops short of it (2.34 where it is 2.747, on one of our networks).

    Example:
        >>> from equipoise.core import Output
        >>> logits, target = torch.tensor([[2.0, 0.0]]).expand(4, 2), torch.tensor([0, 0, 0, 1])
        >>> out = Output(logits)
        >>> temperature = Temperature().fit(out, target)  # right 3 times of 4: softmax must give 0.75
        >>> temperature(out).softmax(1)[0]
        tensor([0.7500, 0.2500])

    Reference: Guo, Pleiss, Sun, Weinberger. On Calibration of Modern Neural Networks. ICML 2017.
    """

    temperature_: float | None = None

    def fit(self, out: Output, target: Tensor) -> Self:
        self.temperature_ = fit_temperature(out.logits, target)
        return self

    def __call__(self, out: Output) -> Tensor:
        if self.temperature_ is None:
            raise ValueError("Temperature is chosen on held-out outputs; call fit(out, target) first")
        return full_precision(out.logits) / self.temperature_
