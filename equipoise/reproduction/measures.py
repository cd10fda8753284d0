"""The page of what else recorded runs come to: rare classes, the worst one, and whether confidence can be believed."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from ..analysis import mean_interval
from ..report.render.words import UNKNOWN, heading, value
from .records import StudyRecords

BY_SIZE = ("many", "medium", "few")  # of use where classes are of unlike size
SAID = (
    "Written by `equipoise tables` from `docs/results/records`: of test images, after the last epoch. Means ± half of "
    "their 95 % intervals over n seeds. Many, medium and few are classes of more than 100, of 20 to 100 and of fewer "
    "than 20 training images; where that leaves one of them empty, a third of the classes each. NLL is the negative "
    "log-likelihood and ECE the expected calibration error with 15 bins, both as the recipe leaves the logits: a "
    "temperature, which costs nothing, would change them."
)


def measures_page(studies: Iterable[StudyRecords]) -> str:
    """A table for each study that has finished runs."""
    parts = ["# What else the recorded runs come to", SAID]
    for study in sorted(studies, key=lambda study: study.name):
        if any(not run.error for run in study.runs):
            parts += [f"## `{study.name}`", _table(study)]
    return "\n\n".join(parts) + "\n"


def _table(study: StudyRecords) -> str:
    by_size = BY_SIZE if _is_uneven(study) else ()
    metrics = dict.fromkeys((study.metric, "worst_class", *by_size, "nll", "ece"))
    lines = [f"| method | n | {' | '.join(map(heading, metrics))} |", "|---|---:|" + "---:|" * len(metrics)]
    for method in study.methods:
        if runs := study.finished(method):
            cells = [_mean(list(study.scores(method, metric).values()), metric) for metric in metrics]
            lines.append(f"| {method} | {len(runs)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _is_uneven(study: StudyRecords) -> bool:
    return any(plain.get("task", {}).get("imbalance") for plain in study.methods.values())


def _mean(scores: list[float], metric: str) -> str:
    if not scores:
        return UNKNOWN
    low, high = mean_interval(scores)
    half = f" ± {value((high - low) / 2, metric)}" if len(scores) > 1 else ""
    return f"{value(fmean(scores), metric)}{half}"
