"""How sure the choices of a search are: by how much trials differ by chance, and which choices are beyond that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ...analysis.statistics.priority import ALL_METRICS
from ...core.words import counted
from .outcome import MethodOutcome, Outcome
from .race import noise_of
from .trial import Trial

ERROR = 0.05  # chance to call a choice surely better that is not


@dataclass(frozen=True)
class Certainty:
    """`reach` is how far the means of two trials are apart by chance alone, in 95 % of cases; in the metric's unit.

    `changed` are methods whose chosen trial is not the recipe as written, `surely` those of them in which it is better
    beyond chance.
    """

    reach: float
    changed: tuple[str, ...]
    surely: tuple[str, ...]


def certainty(outcome: Outcome) -> Certainty | None:
    r"""None where trials have one seed each, or there are too few of them to say.

    Trials share their seeds, so what a seed does to all of them is no noise. σ̂ is what is left in the scores of all
    methods when the effects of trials and seeds are taken out of each; f are its degrees of freedom. Of T trials the
    best of S seeds each is surely better than the first if

    .. math:: \bar x_b - \bar x_1 > t_{f,\, 1 - 0.025 / (T - 1)} \; \hat\sigma \sqrt{2 / S}
    """
    seeds = len(outcome.study.tuning.seeds)
    sigma, freedom = _pooled([_rows(method) for method in outcome.methods])
    if not freedom:
        return None

    def reach(trials: int) -> float:
        return float(special.stdtrit(freedom, 1 - ERROR / 2 / max(1, trials - 1))) * sigma * math.sqrt(2 / seeds)

    sign = 1 if ALL_METRICS[outcome.study.metric].higher_is_better else -1
    changed, surely = [], []
    for method in outcome.methods:
        written, best = method.trials[0], method.best
        if best is None or best is written:
            continue
        changed.append(method.name)
        if written.finished and sign * (_value(best) - _value(written)) > reach(len(_rows(method))):
            surely.append(method.name)
    return Certainty(reach(2), tuple(changed), tuple(surely))


def words(outcome: Outcome) -> str:
    """What to think of the choices, in a few sentences."""
    seeds, found = len(outcome.study.tuning.seeds), certainty(outcome)
    if seeds == 1:
        return "With one seed for each trial nobody can say how much of this is chance: seeds = 3 in [tune] would tell."
    if found is None:
        return "There are too few trials to say how much of this is chance."
    percent = ALL_METRICS[outcome.study.metric].unit == "percent"
    by = f"{100 * found.reach:.1f} points" if percent else f"{found.reach:.3f}"
    told = f"By chance alone two trials differ by up to {by} (means of {counted(seeds, 'seed')}, 95 %)."
    if not found.changed:
        return told
    more = "" if len(found.surely) == len(found.changed) else " More seeds, or more validation images, would tell more."
    return (
        f"{told} {counted(len(found.changed), 'method')} chose another trial than the recipe as written; surely better "
        f"for it: {', '.join(found.surely) or 'none'}.{more}"
    )


def _value(trial: Trial) -> float:
    assert trial.score.value is not None, "a finished trial has one"
    return trial.score.value


def _rows(method: MethodOutcome) -> list[np.ndarray]:
    """The scores of each finished trial, by seed."""
    return [np.array(trial.score.by_seed) for trial in method.trials if trial.finished]


def _pooled(methods: Sequence[list[np.ndarray]]) -> tuple[float, int]:
    """The noise of all methods together, and its degrees of freedom."""
    found = [noise_of(rows) for rows in methods]
    freedom = sum(f for _, f in found)
    return (math.sqrt(sum(f * sigma**2 for sigma, f in found if f) / freedom), freedom) if freedom else (math.nan, 0)
