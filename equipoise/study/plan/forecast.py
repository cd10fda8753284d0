"""What a study will cost and can show, in two sentences, said when it begins."""

from __future__ import annotations

import math

from ...analysis.statistics.power import detectable_effect
from ...analysis.statistics.tests import smallest_n_for_claim
from ...core.times import about
from ...core.words import counted
from ..run.hardware import device_name
from ..run.job import jobs_of
from ..study import Study
from .cost import Cost, RunTimes

ALPHA = 0.05  # the chance of any false claim
LIKELY = 0.8  # the chance with which a difference should be shown


def forecast(study: Study, times: RunTimes, workers: int) -> str:
    """Cost and power in two sentences; nothing where nothing is to be done."""
    cost = times.cost(jobs_of(recipe for _, recipe in study.recipes()), workers)
    comparisons, n = len(study.methods) - 1, len(study.seeds)
    if not cost.runs:
        return ""
    said = f"{counted(cost.runs, 'training')} to do, {time_words(cost, times)}."
    if not comparisons:
        return said
    effect = detectable_effect(n, LIKELY, ALPHA, comparisons)
    if math.isinf(effect):
        return f"{said} {too_few(n, comparisons)}"
    return (
        f"{said} With {counted(n, 'seed')} a difference of {effect:.1f} times its spread from seed to seed has a "
        f"chance of {percent(LIKELY)} to be shown."
    )


def too_few(n: int, comparisons: int) -> str:
    least = smallest_n_for_claim(ALPHA, comparisons)
    return f"{counted(n, 'seed')} cannot support any claim about {comparisons + 1} methods; {least} can."


def time_words(cost: Cost, times: RunTimes) -> str:
    where = f"with {counted(cost.workers, 'worker')} on {device_name(times.device)}"
    if math.isnan(cost.wall):
        return f"{where}; how long that takes could not be measured ({times.problem})"
    roughly = "at most" if times.device.type == "cuda" else "about"  # side by side on a GPU they cost less
    return f"{roughly} {about(cost.wall)} {where}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
