"""The tables of a report as data, and results.csv. Terminal, Markdown and HTML show the same cells."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..analysis import METRICS
from .collect import Estimate, Method, Results
from .words import UNKNOWN, heading, interval, p_value, title_of, value

SHORT = 8  # letters of a key that are shown


@dataclass(frozen=True)
class Cell:
    """`main` is what the eye looks for, `minor` its interval and n; `sort` orders a column, NaN last."""

    main: str
    minor: str = ""
    sort: float | str = math.nan
    note: str = ""

    def __str__(self) -> str:
        return f"{self.main} {self.minor}".strip()


@dataclass(frozen=True)
class Column:
    """`note` explains it; `high_first` ones are sorted downwards first."""

    name: str
    title: str
    note: str
    numeric: bool = True
    high_first: bool = False


@dataclass(frozen=True)
class Row:
    method: Method
    cells: tuple[Cell, ...]

    @property
    def tier(self) -> int | None:
        return self.method.result.tier


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def tiers(self) -> list[tuple[int | None, list[Row]]]:
        """Rows by tier, best tier first; methods without runs (None) last."""
        groups: dict[int | None, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(row.tier, []).append(row)
        return list(groups.items())


def ranked_table(results: Results) -> Table:
    """Rank, tier and method; the study's metric and the difference to the baseline; the other metrics; the network."""
    others = [metric for metric in METRICS if metric != results.metric]
    paired = "mean difference over the seeds both have, with its 95 % interval (pairs)"
    tested = "sign-flip test of the paired differences, adjusted for the number of methods"
    columns = [
        Column("rank", "#", "rank by the mean"),
        Column("tier", "Tier", "within a tier no method is separably worse than its best"),
        Column("method", "Method", "a mark says in what a row is unlike the baseline", numeric=False),
        _metric_column(results.metric),
        Column("difference", f"Δ to {results.baseline}", paired, high_first=_up(results.metric)),
        Column("p_holm", "p (Holm)", tested),
        Column("standing", "Standing", "what the test says at 5 %", numeric=False),
        *(_metric_column(metric) for metric in others),
        Column("parameters", "Parameters", "numbers the network learns"),
        Column("key", "Key", "of the first seed's run, its folder in the store", numeric=False),
    ]
    return Table(tuple(columns), tuple(Row(m, _cells(m, results.metric, others)) for m in results.methods))


def _metric_column(metric: str) -> Column:
    note = f"{title_of(metric)}: mean ± half of its 95 % interval (number of seeds)"
    return Column(metric, heading(metric), note, high_first=_up(metric))


def _up(metric: str) -> bool:
    return METRICS[metric].higher_is_better


def _cells(method: Method, metric: str, others: Sequence[str]) -> tuple[Cell, ...]:
    r, parameters = method.result, method.parameters
    marks = f"({', '.join(method.marks)})" if method.marks else ""
    unadjusted = "" if math.isnan(r.p) else f"unadjusted {p_value(r.p)}, {r.n_pairs} pairs"
    keys = "\n".join(f"seed {run.seed}: {run.key}" for run in method.runs)
    return (
        Cell(str(method.rank + 1), sort=method.rank),
        Cell(str(r.tier or UNKNOWN), sort=r.tier or math.nan),
        Cell(method.name, marks, sort=method.name),
        estimate_cell(Estimate(r.n, r.mean, r.low, r.high), metric),
        _difference_cell(method, metric),
        Cell(p_value(r.p_holm), sort=r.p_holm, note=unadjusted),
        Cell(r.standing, f"(≈ {r.seeds_needed} pairs needed)" if r.seeds_needed else "", sort=r.standing),
        *(estimate_cell(method.estimates[name], name) for name in others),
        Cell(UNKNOWN if parameters is None else f"{parameters:,}", sort=math.nan if parameters is None else parameters),
        Cell(method.runs[0].key[:SHORT], sort=method.runs[0].key, note=keys),
    )


def estimate_cell(e: Estimate, metric: str) -> Cell:
    """`71.2 ± 0.8 (6)`.

    >>> print(estimate_cell(Estimate(6, 0.712, 0.704, 0.72), "accuracy"))
    71.2 ± 0.8 (6)
    >>> print(estimate_cell(Estimate(1, 0.712, math.nan, math.nan), "accuracy"))
    71.2 ± – (1)
    """
    if not e.n:
        return Cell(UNKNOWN, "(0)")
    return Cell(value(e.mean, metric), f"± {value(e.half, metric)} ({e.n})", e.mean, interval(e.low, e.high, metric))


def _difference_cell(method: Method, metric: str) -> Cell:
    r = method.result
    if method.is_baseline:
        return Cell("baseline", sort=0.0)
    if not r.n_pairs:
        return Cell(UNKNOWN, "(0)")
    return Cell(
        value(r.difference, metric, sign=True),
        f"{interval(r.diff_low, r.diff_high, metric, sign=True)} ({r.n_pairs})",
        r.difference,
    )


def class_table(results: Results) -> tuple[list[str], list[list[Cell]]]:
    """Header and rows: each class with its training images, largest first, and each method's accuracy on it."""
    shown = [m for m in results.methods if m.per_class]
    order = sorted(range(len(results.class_names)), key=lambda c: (-results.class_counts[c], c)) if shown else []
    rows = [
        [
            Cell(results.class_names[c], sort=results.class_names[c]),
            Cell(str(results.class_counts[c]), sort=results.class_counts[c]),
            *(estimate_cell(m.per_class[c], "accuracy") for m in shown),
        ]
        for c in order
    ]
    return ["Class", "Images", *(m.name for m in shown)], rows


def results_csv(results: Results) -> str:
    """One line a run, every metric at full precision; what is not known is nan."""
    text = io.StringIO(newline="")
    sheet = csv.writer(text, lineterminator="\n")
    sheet.writerow(["method", "seed", "state", "key", "parameters", "seconds", *METRICS])
    for run in results.runs:
        known = (run.record.parameters, run.record.seconds) if run.record else (math.nan, math.nan)
        sheet.writerow([run.method, run.seed, run.state, run.key, *known, *(run.metrics[m] for m in METRICS)])
    return text.getvalue()
