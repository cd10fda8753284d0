"""Whether trainings were long enough, judged by what a longer training of the same method gains.

Flat curves show nothing: a learning rate that falls to zero flattens every curve. Only more epochs tell what more
epochs would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

MATERIAL = 0.1  # a longer training that makes less than a tenth fewer mistakes changes nothing that matters
LEARNED = 0.9  # of what the longer training learned of the training images
ALPHA = 0.05  # chance that a training that was long enough is called too short because of the noise of its scores


@dataclass(frozen=True)
class Gain:
    """What a longer training gained; above 0 is better whatever the metric.

    `by_chance` is the largest gain that is still put down to chance, nan if the runs do not tell. `mistakes` is what
    there was to gain: one minus the mean score, or the mean score where lower is better. `learned` is how much of the
    longer training's fall in training loss the planned length had reached.
    """

    gain: float
    by_chance: float
    mistakes: float
    learned: float

    @property
    def too_short(self) -> bool:
        """The longer training makes clearly fewer mistakes, and that is no chance or the training loss agrees."""
        material = self.gain > 0 and self.gain >= MATERIAL * self.mistakes
        return material and (self.gain > self.by_chance or self.learned < LEARNED)


def gain_of(
    scores: Mapping[str, Sequence[float]],
    method: str,
    place: int,
    longer: float,
    *,
    higher_is_better: bool,
    learned: float = math.nan,
    tests: int = 1,
) -> Gain:
    """Of a longer training of `method` with the seed at `place`, from its score and those of the study (n_seeds,) each.

    If length does not matter the longer run is one more of its method and seed, so by the additive model of scores,
    method + seed + noise, with m methods and n seeds:

    .. math:: \\text{longer} - (\\bar y_{method} + \\bar y_{seed} - \\bar y) \\sim
              t_{(m-1)(n-1)} \\; s \\, \\sqrt{1 + \\tfrac1n + \\tfrac1m - \\tfrac1{nm}}

    with s² the mean square of the residuals of that model. `by_chance` is the upper end of this at `ALPHA` / `tests`,
    one-sided. Seeds that `method` has not finished are left out, and methods that lack one of the others.

    >>> scores = {"plain": [0.30, 0.34, 0.32, 0.33], "focal": [0.31, 0.36, 0.32, 0.35]}
    >>> found = gain_of(scores, "plain", 0, longer=0.55, higher_is_better=True)
    >>> round(found.gain, 3), round(found.by_chance, 3), found.too_short
    (0.251, 0.02, True)
    """
    sign = 1 if higher_is_better else -1
    own = np.asarray(scores[method], dtype=np.float64)
    seeds = np.isfinite(own)
    if not (seeds[place] and math.isfinite(longer)):
        return Gain(math.nan, math.nan, math.nan, learned)
    others = [np.asarray(x, dtype=np.float64)[seeds] for name, x in scores.items() if name != method]
    table = np.array([own[seeds], *(row for row in others if np.isfinite(row).all())])
    seed = int(seeds[:place].sum())
    usual, of_seed = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    model = usual + of_seed - table.mean()
    mistakes = 1 - usual[0, 0] if higher_is_better else usual[0, 0]
    expected = float(model[0, seed]) if len(table) > 1 else float(usual[0, 0])
    return Gain(sign * (longer - expected), _by_chance(table - model, tests), float(mistakes), learned)


def _by_chance(residuals: np.ndarray, tests: int) -> float:
    """The upper end of a prediction interval for one more run, from the residuals (m, n) of the additive model."""
    m, n = residuals.shape
    freedom = (m - 1) * (n - 1)
    if not freedom:
        return math.nan
    spread = math.sqrt(float((residuals**2).sum()) / freedom)
    reach = float(special.stdtrit(freedom, 1 - ALPHA / tests))
    return reach * spread * math.sqrt(1 + 1 / n + 1 / m - 1 / (n * m))


def learned_share(planned: Sequence[float], longer: Sequence[float]) -> float:
    """How much of the fall in training loss of a `longer` training the `planned` one had reached; curves by epoch.

    At most 1, and 1 where the longer training learned no more. Nan where a curve is not known.

    >>> learned_share([2.0, 1.5], [2.0, 1.6, 1.2, 1.0])
    0.5
    """
    ends = [*planned[:1], *planned[-1:], *longer[-1:]]
    if len(ends) < 3 or not all(map(math.isfinite, ends)):
        return math.nan
    first, last, further = ends
    return 1.0 if further >= last or first <= further else max(0.0, (first - last) / (first - further))
