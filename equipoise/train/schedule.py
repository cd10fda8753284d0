"""How the learning rate moves: a linear warm-up, then one of three ways down."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ..core import checks, register

Schedule = Callable[[float], float]  # epochs done, as a fraction -> factor of the peak learning rate


@register("cosine", kind="schedule", year=2016, arxiv="1608.03983")
def cosine(epochs: int) -> Schedule:
    """Half a cosine from the peak down to zero."""
    return lambda epoch: 0.5 * (1 + math.cos(math.pi * epoch / epochs))


@register("steps", kind="schedule")
def steps(epochs: int, at: tuple[float, ...] = (0.8, 0.9), factor: float = 0.01) -> Schedule:
    """Multiplied by `factor` at each of `at`, given as shares of training (class-balanced loss: 160 and 180 of 200)."""
    if not isinstance(at, tuple | list):
        raise ValueError(f"at must be shares of training, such as (0.8, 0.9), not {at!r}")
    for share in at:
        checks.between("at", share, 0, 1)
    checks.above("factor", factor, 0)
    return lambda epoch: factor ** sum(epoch >= share * epochs for share in at)


@register("exponential", kind="schedule")
def exponential(epochs: int, factor: float = 0.975, warmup_epochs: float = 0.0) -> Schedule:
    """Multiplied by `factor` every epoch after the warm-up (the loss functions study: 0.975)."""
    checks.above("factor", factor, 0)
    return lambda epoch: factor ** max(0.0, epoch - warmup_epochs)


def learning_rates(schedule: Schedule, peak: float, epochs: int, warmup: float, steps_per_epoch: int) -> Tensor:
    """The learning rate of every step (epochs · steps_per_epoch,): linear from 0 to the peak, then the schedule.

    All are known before training starts, so the step reads its own from a table on the device.
    """

    def rate(step: int) -> float:
        epoch = step / steps_per_epoch
        # the first step would do nothing at a rate of exactly 0
        rising = min(1.0, (epoch + 1 / steps_per_epoch) / warmup) if warmup else 1.0
        return peak * rising * schedule(epoch)

    steps = epochs * steps_per_epoch
    return torch.from_numpy(np.fromiter(map(rate, range(steps)), np.float64, steps))
