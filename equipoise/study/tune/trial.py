"""`Trial`: one recipe, a run for each seed, and the score that its validation curves give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...store import Record
from ...train import Recipe
from .aim import Aim
from .records import Records
from .space import Point


@dataclass(frozen=True)
class Score:
    """What the runs of a trial came to on validation data. `value` is None where one of them failed.

    `epoch` is the one to stop at, at which the mean over the seeds was best; None where there was nothing to choose
    from: of a second stage, a post-hoc method, or a score of which no curve is kept.
    """

    value: float | None
    by_seed: tuple[float, ...] = ()
    epoch: int | None = None
    seconds: float = 0.0
    error: str | None = None

    @property
    def spread(self) -> float | None:
        """Standard deviation over the seeds; None of a single one."""
        return float(np.std(self.by_seed, ddof=1)) if len(self.by_seed) > 1 else None


@dataclass(frozen=True)
class Trial:
    """A point of a method's space as a recipe. Two proposals of one recipe are one trial."""

    number: int
    point: Point
    recipe: Recipe
    score: Score = Score(None)
    pruned: bool = False

    @property
    def finished(self) -> bool:
        """Whether all its runs are done and none failed: only such a trial can be chosen."""
        return self.score.value is not None and not self.pruned

    @property
    def failed(self) -> bool:
        """Whether one of its runs did."""
        return self.score.error is not None

    def runs(self, seeds: Sequence[int]) -> list[Recipe]:
        return [replace(self.recipe, seed=seed) for seed in seeds]


def score(runs: Sequence[Record], aim: Aim, records: Records) -> Score:
    r"""The mean of the runs' validation curves at its best epoch.

    .. math:: \max_e \tfrac{1}{S} \textstyle\sum_s m_{s,e}

    (the minimum where less is better); of equal epochs the first. Nothing of the test set is read.
    """
    seconds = sum(run.seconds for run in runs)
    for run in runs:
        if not run.finished:
            return Score(None, seconds=seconds, error=run.error)
    curves = np.array([aim.curve(run, records) for run in runs])
    if not curves.size:
        return Score(None, seconds=seconds, error=f"there is no {aim.metric}: the validation set is empty")
    mean = curves.mean(axis=0)
    if np.isnan(mean).all():
        return Score(
            None, seconds=seconds, error=f"{aim.metric} is not defined: no validation image is of such a class"
        )
    best = int(np.nanargmax(mean) if aim.entry.higher_is_better else np.nanargmin(mean))
    recipe = Recipe.from_dict(runs[0].recipe)
    chooses = recipe.stage is None and recipe.posthoc is None and len(mean) == recipe.plan.epochs
    if not chooses:
        best = len(mean) - 1
    return Score(float(mean[best]), tuple(curves[:, best].tolist()), best + 1 if chooses else None, seconds)
