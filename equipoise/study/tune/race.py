"""A race between trials: after each seed, those that have no hope against the best get no more seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

LEVEL = 0.95  # how sure a trial's end must be
Scores = Sequence[Sequence[float]]


def hopeless_trials(scores: Scores, seeds: int, *, higher_is_better: bool, margin: float = 0.0) -> list[bool]:
    r"""Which trials are to end: `scores` of all trials so far, each with its first seeds, in one order.

    Trials share their seeds, so their first s = `seeds` scores are paired. Trial t ends if it is, at 95 %, not better
    than the leader b by more than `margin`:

    .. math:: \bar x_b - \bar x_t > t_{0.95} \, \hat\sigma \sqrt{2 / s} - \text{margin}

    σ̂ is the noise that is left when the effects of trials and seeds are taken out. Only trials with `seeds` seeds are
    judged, and nobody ends before some trials have a second seed, from which the noise is known.
    """
    sign = 1.0 if higher_is_better else -1.0
    rows = [sign * np.array(row, dtype=np.float64) for row in scores]
    noise, freedom = _noise(rows)
    if not freedom:
        return [False] * len(rows)
    means = np.array([row[:seeds].mean() if len(row) >= seeds else -math.inf for row in rows])
    reach = float(special.stdtrit(freedom, LEVEL)) * noise * math.sqrt(2 / seeds) - margin
    behind = means.max() - means
    ends: list[bool] = (behind > reach).tolist()
    leader = int(means.argmax())
    return [end and place != leader and len(rows[place]) == seeds for place, end in enumerate(ends)]


def _noise(rows: Sequence[np.ndarray]) -> tuple[float, int]:
    """Standard deviation of a score about the sum of its trial's and its seed's effect; and its degrees of freedom.

    The worst quarter of the trials is left out: trainings that diverge are noisier, and need no fine test.
    """
    known = sorted((row for row in rows if len(row) > 1), key=lambda row: -row.mean())
    known = known[: max(3, math.ceil(0.75 * len(known)))]
    if not known:
        return math.nan, 0
    trial = np.repeat(np.arange(len(known)), [len(row) for row in known])
    seed = np.concatenate([np.arange(len(row)) for row in known])
    design = np.hstack([np.eye(len(known))[trial], np.eye(seed.max() + 1)[seed][:, 1:]])
    freedom = len(trial) - design.shape[1]
    x = np.concatenate(known)
    rest = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
    return (math.sqrt(float(rest @ rest) / freedom), freedom) if freedom > 0 else (math.nan, 0)
