"""The tables of a report as data, and results.csv. Terminal, Markdown and HTML show the same cells."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...analysis import METRICS, MethodResult
from ...analysis.statistics.priority import ALL_METRICS
from ...core.escaping import csv_cell
from ..collected import TOP5_CLASSES, Collected, Estimate, Method
from ..pairs import Pair
from .words import UNKNOWN, heading, interval, number, p_value, title_of, value

SHORT = 8  # letters of a key that are shown
# Metrics beside the study's own for which a page has room; the others are with each method, and in the CSV files.
USUAL = ("accuracy", "balanced_accuracy", "worst_class", "many", "medium", "few", "nll", "ece")
MOST_CLASSES = 200  # rows of the table of classes; of more, the largest and the smallest


@dataclass(frozen=True)
class Cell:
    """`main` is what the eye looks for, `minor` its interval, `second` another interval, on a line of its own.

    `sort` orders a column, NaN last; `bold` is for the best.
    """

    main: str
    minor: str = ""
    sort: float | str = math.nan
    note: str = ""
    bold: bool = False
    second: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.main, self.minor, self.second)))


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


def ranked_table(results: Collected) -> Table:
    """Rank, tier and method; the study's metric and the difference to the baseline; the other metrics; the network."""
    _, *others = usual_metrics(results)
    paired = "mean difference over the seeds both have, with its 95 % interval on these test images and on new ones"
    likely = "chance that a new run beats a new run of the baseline (Mann-Whitney), with its 95 % interval"
    tested = "sign-flip test of the paired differences, adjusted for the number of methods"
    columns = [
        Column("rank", "#", "rank by the difference to the baseline"),
        Column("tier", "Tier", "no two methods of a tier are separable"),
        Column("method", "Method", "a mark says in what a row is unlike the baseline", numeric=False),
        _metric_column(results.metric),
        Column("difference", f"Δ to {results.baseline}", paired, high_first=_up(results.metric)),
        Column("p_holm", "p (Holm)", tested),
        Column("standing", "Standing", "what the test says at 5 %", numeric=False),
        Column("beats", f"Beats {results.baseline}\u00a0%", likely, high_first=True),
        *(_metric_column(metric) for metric in others),
        Column("n", "n", "seeds with a finished run", high_first=True),
        Column("parameters", "Parameters", "numbers the network learns"),
        Column("key", "Key", "of the first seed's run, its folder in the store", numeric=False),
    ]
    return Table(tuple(columns), tuple(Row(m, _cells(m, results.metric, others)) for m in results.methods))


def usual_metrics(results: Collected) -> list[str]:
    """The study's own metric, then the others for which a table has room."""
    top5 = ("top5",) if len(results.class_names) >= TOP5_CLASSES else ()
    first, *rest = USUAL
    return list(dict.fromkeys((results.metric, first, *top5, *rest)))


def _metric_column(metric: str) -> Column:
    note = f"{title_of(metric)}: mean ± half of its 95 % interval"
    return Column(metric, heading(metric), note, high_first=_up(metric))


def _up(metric: str) -> bool:
    return ALL_METRICS[metric].higher_is_better


def _cells(method: Method, metric: str, others: Sequence[str]) -> tuple[Cell, ...]:
    r, parameters = method.result, method.parameters
    marks = f"({', '.join(method.marks)})" if method.marks else ""
    unadjusted = "" if math.isnan(r.p) else f"unadjusted {p_value(r.p)}, {r.n_pairs} pairs"
    keys = "\n".join(f"seed {run.seed}: {run.key}" for run in method.runs)
    return (
        Cell(str(method.rank + 1), sort=method.rank),
        Cell(str(r.tier or UNKNOWN), sort=r.tier or math.nan),
        Cell(method.name, marks, sort=method.name),
        estimate_cell(Estimate(r.n, r.mean, r.low, r.high), metric, r.n, metric in method.leads),
        _difference_cell(method, metric),
        Cell(p_value(r.p_holm), sort=r.p_holm, note=unadjusted),
        Cell(r.standing, _about_standing(r), sort=r.standing),
        _beats_cell(method),
        *(_metric_cell(method, name) for name in others),
        Cell(str(r.n), sort=r.n),
        Cell(UNKNOWN if parameters is None else f"{parameters:,}", sort=math.nan if parameters is None else parameters),
        Cell(method.runs[0].key[:SHORT], sort=method.runs[0].key, note=keys),
    )


def _metric_cell(method: Method, metric: str) -> Cell:
    return estimate_cell(method.estimates[metric], metric, usual_n=method.result.n, bold=metric in method.leads)


def estimate_cell(e: Estimate, metric: str, usual_n: int | None = None, bold: bool = False) -> Cell:
    """`71.2 ± 0.8 (6)`, without the number of seeds where it is the usual one.

    >>> print(estimate_cell(Estimate(6, 0.712, 0.704, 0.72), "accuracy"))
    71.2 ± 0.8 (6)
    >>> print(estimate_cell(Estimate(1, 0.712, math.nan, math.nan), "accuracy", usual_n=1))
    71.2 ± –
    """
    seeds = "" if e.n == usual_n else f" ({e.n})"
    if not e.n:
        return Cell(UNKNOWN, seeds.strip())
    note = f"{interval(e.low, e.high, metric)}, n = {e.n}"
    return Cell(value(e.mean, metric), f"± {value(e.half, metric)}{seeds}", e.mean, note, bold)


def _difference_cell(method: Method, metric: str) -> Cell:
    r = method.result
    if method.is_baseline:
        return Cell("baseline", sort=0.0)
    seeds = "" if r.n_pairs == r.n else f" ({r.n_pairs})"
    if not r.n_pairs:
        return Cell(UNKNOWN, seeds.strip())
    between = interval(r.diff_low, r.diff_high, metric, sign=True)
    note, new = f"{r.n_pairs} pairs", ""
    if math.isfinite(r.new_low):
        new = f"new {interval(r.new_low, r.new_high, metric, sign=True)}"
        left = f"with any number of seeds ± {value(r.new_at_best, metric)} would be left"
        note += f"; for new images limited more by {r.limited_by}, {left}"
    return Cell(value(r.difference, metric, sign=True), f"{between}{seeds}", r.difference, note, second=new)


def _about_standing(r: MethodResult) -> str:
    """What a claim is about; or the pairs that would probably make one."""
    if r.holds_for:
        return "(new images too)" if r.holds_for == "new images" else "(these images)"
    return f"(≈ {r.seeds_needed} pairs)" if r.seeds_needed else ""


def _beats_cell(method: Method) -> Cell:
    r = method.result
    if math.isnan(r.beats):
        return Cell(UNKNOWN)
    return Cell(number(100 * r.beats, 0), f"[{number(100 * r.beats_low, 0)}, {number(100 * r.beats_high, 0)}]", r.beats)


def class_table(results: Collected) -> tuple[list[str], list[list[Cell]]]:
    """Header and rows: each class with its training images, largest first, and each method's accuracy on it.

    Of more than `MOST_CLASSES` classes, half are the largest and half the smallest.
    """
    shown = [m for m in results.methods if m.per_class]
    order, half = results.by_size if shown else [], MOST_CLASSES // 2
    if len(order) > MOST_CLASSES:
        order = order[:half] + order[-half:]
    rows = [
        [
            Cell(results.class_names[c], sort=results.class_names[c]),
            Cell(str(results.class_counts[c]), sort=results.class_counts[c]),
            *(estimate_cell(m.per_class[c], "accuracy", usual_n=m.result.n) for m in shown),
        ]
        for c in order
    ]
    return ["Class", "Images", *(m.name for m in shown)], rows


def metric_table(method: Method) -> list[tuple[str, Cell]]:
    """Every metric of one method, by its title."""
    return [
        (heading(metric), estimate_cell(e, metric, method.result.n, metric in method.leads))
        for metric, e in method.estimates.items()
    ]


def pair_table(results: Collected, pairs: Sequence[Pair]) -> tuple[list[str], list[list[Cell]]]:
    """Header and rows: two methods, the mean difference of their scores with its interval, and the tests."""
    header = ["Method", "minus", f"Difference in {title_of(results.metric).lower()}", "Pairs", "p", "p (Holm)"]
    rows = [
        [
            Cell(p.second.name, sort=p.second.name),
            Cell(p.first.name, sort=p.first.name),
            Cell(
                value(p.difference, results.metric, sign=True),
                interval(p.low, p.high, results.metric, sign=True),
                sort=p.difference,
            ),
            Cell(str(p.n), sort=p.n),
            Cell(p_value(p.p), sort=p.p),
            Cell(p_value(p.p_holm), sort=p.p_holm, bold=p.p_holm <= results.verdict.alpha),
        ]
        for p in pairs
    ]
    return header, rows


def results_csv(results: Collected) -> str:
    """One line a run, every metric at full precision; what is not known is nan."""
    text = io.StringIO(newline="")
    sheet = csv.writer(text, lineterminator="\n")
    metrics = {**METRICS, results.metric: None}
    sheet.writerow(["method", "seed", "state", "key", "parameters", "seconds", *metrics])
    for run in results.runs:
        known = (run.record.parameters, run.record.seconds) if run.record else (math.nan, math.nan)
        name = csv_cell(run.method)
        sheet.writerow([name, run.seed, run.state, run.key, *known, *(run.metrics[m] for m in metrics)])
    return text.getvalue()
