"""Whether a published number and our runs agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import special

from .published import Cell
from .records import StudyRecords

FEWEST = 3  # runs of ours: the interval of two is so wide that it excludes almost nothing
OUTSIDE = ("outside", "recipe differs, outside")
STATES = (*OUTSIDE, "recipe differs, inside", "inside", "too few runs", "not run")


def new_mean_interval(values: Sequence[float], runs: int, confidence: float = 0.95) -> tuple[float, float]:
    r"""Where the mean of so many new runs falls, given the scores of the runs that are there.

    .. math:: \bar x \pm t_{n - 1} \, s \sqrt{\frac{1}{n} + \frac{1}{m}}

    for n `values` with standard deviation s and m new `runs` of the same recipe; (nan, nan) for fewer than two values.

    >>> low, high = new_mean_interval([1.0, 2.0, 3.0], runs=3)
    >>> round(low, 2), round(high, 2)
    (-1.51, 5.51)
    """
    x = np.asarray(values, dtype=np.float64)
    if len(x) < 2:
        return math.nan, math.nan
    reach = special.stdtrit(len(x) - 1, (1 + confidence) / 2)
    half = float(reach * x.std(ddof=1) * math.sqrt(1 / len(x) + 1 / runs))
    return float(x.mean()) - half, float(x.mean()) + half


@dataclass(frozen=True)
class Judgement:
    """A cell, our runs of it in percent, where a mean like the published one would fall, and what follows."""

    cell: Cell
    state: str  # one of `STATES`
    n: int = 0
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan


def judge(cell: Cell, records: StudyRecords | None) -> Judgement:
    """Compare a published number with the records of its study, if there are any.

    Runs that learned nothing make an interval that holds any number: with them it is outside.
    """
    values = _values(cell, records) if records else []
    if not records or not values:
        return Judgement(cell, "not run")
    low, high = new_mean_interval(values, cell.n or 1)
    stuck = any(stuck_runs(records, method) for method in (cell.method, cell.against) if method)
    inside = not stuck and low - cell.rounding <= cell.value <= high + cell.rounding
    state = "inside" if inside else "outside"
    state = "too few runs" if len(values) < FEWEST else f"recipe differs, {state}" if cell.differs else state
    return Judgement(cell, state, len(values), fmean(values), low, high)


def stuck_runs(records: StudyRecords, method: str) -> int:
    """How many runs of a method learned nothing."""
    return sum(names_one_class(run.metrics) for run in records.finished(method))


def names_one_class(metrics: Mapping[str, float]) -> bool:
    """Whether these are the scores of naming one class for all images: its recall is 1 and that of all others 0.

    >>> names_one_class({"accuracy": 0.1, "balanced_accuracy": 0.1, "macro_f1": 0.0181818, "worst_class": 0.0})
    True
    >>> names_one_class({"accuracy": 0.12, "balanced_accuracy": 0.12, "macro_f1": 0.0852, "worst_class": 0.0})
    False
    """
    share, recall, f1 = (metrics.get(name, math.nan) for name in ("accuracy", "balanced_accuracy", "macro_f1"))
    classes = round(1 / recall) if recall > 0 else 0
    if classes < 2 or metrics.get("worst_class") != 0:
        return False
    of_the_one = 2 * share / (1 + share)
    return math.isclose(recall, 1 / classes, rel_tol=1e-5) and math.isclose(f1, of_the_one / classes, rel_tol=1e-5)


def _values(cell: Cell, records: StudyRecords) -> list[float]:
    """Our scores in percent, or the gains over the other method, seed by seed."""
    own = records.scores(cell.method, cell.measured)
    if cell.against is None:
        return [100 * score for score in own.values()]
    other = records.scores(cell.against, cell.measured)
    return [100 * (score - other[seed]) for seed, score in own.items() if seed in other]
