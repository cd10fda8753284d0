"""The tables of several data sets: methods, methods × data sets, methods × methods; and combined.csv."""

from __future__ import annotations

import csv
import io
import math

from ...analysis.statistics.combined import Combined, CombinedMethod, CombinedPair
from ...core.escaping import csv_cell
from ..sections.section import Sorted
from .tables import Cell
from .words import UNKNOWN, interval, number, p_value, value

COLUMNS = (
    "method", "data", "n", "mean", "low", "high", "error", "p", "p_holm", "tau", "next_low", "next_high", "p_unlike",
    "rank", "standing",
)  # fmt: skip


def method_table(combined: Combined) -> Sorted:
    """Each method over all data sets."""
    header = [
        "Method",
        "Standing",
        f"Mean Δ to {combined.baseline}",
        "p (Holm)",
        "Data sets",
        "τ",
        "A further data set",
    ]
    header += ["Data sets differ, p", "Mean rank"]
    rows = [_method_row(combined, method) for method in combined.methods]
    return Sorted(header, rows, f"Mean differences to {combined.baseline} over data sets", texts=2)


def _method_row(combined: Combined, method: CombinedMethod) -> list[Cell]:
    metric, claimed = combined.metric, method.standing in ("better", "worse")
    ends = interval(method.low, method.high, metric, sign=True) if math.isfinite(method.low) else ""
    further = interval(method.next_low, method.next_high, metric, sign=True) if math.isfinite(method.next_low) else ""
    return [
        Cell(method.name, sort=method.name),
        Cell(method.standing, f"against: {'; '.join(method.against)}" if method.against else "", sort=method.standing),
        Cell(value(method.mean, metric, sign=True), ends, sort=method.mean, bold=claimed),
        Cell(p_value(method.p_holm), sort=method.p_holm, note=f"unadjusted {p_value(method.p)}"),
        Cell(str(len(method.effects)) if method.effects else UNKNOWN, sort=len(method.effects)),
        Cell(value(method.tau, metric), sort=method.tau),
        Cell(further or UNKNOWN, sort=method.next_low),
        Cell(p_value(method.p_unlike), sort=method.p_unlike),
        Cell(number(method.rank, 1), sort=method.rank),
    ]


def data_table(combined: Combined) -> Sorted:
    """Each method's difference to the baseline on each data set."""
    rows = [
        [Cell(method.name, sort=method.name), *(_effect_cell(combined, method, data) for data in combined.data)]
        for method in combined.methods
        if method.effects
    ]
    return Sorted(["Method", *combined.data], rows, f"Difference to {combined.baseline} on each data set", texts=1)


def _effect_cell(combined: Combined, method: CombinedMethod, data: str) -> Cell:
    effect = method.effect_on(data)
    if effect is None:
        return Cell(UNKNOWN)
    ends = interval(effect.low, effect.high, combined.metric, sign=True)
    against = "against the mean" if data in method.against else ""
    return Cell(
        value(effect.mean, combined.metric, sign=True),
        f"{ends} ({effect.n})",
        sort=effect.mean,
        note=against,
        bold=bool(against),
    )


def pair_matrix(combined: Combined) -> Sorted:
    """Row minus column: the mean difference over data sets, on how many it is better and worse, and p after Holm."""
    names = [method.name for method in combined.methods]
    known = {(pair.first, pair.second): pair for pair in combined.pairs}
    rows = [[Cell(a, sort=a), *(_pair_cell(combined, known, a, b) for b in names)] for a in names]
    return Sorted(["Row minus column", *names], rows, "Every pair of methods over data sets", texts=1)


def _pair_cell(combined: Combined, known: dict[tuple[str, str], CombinedPair], first: str, second: str) -> Cell:
    pair, sign = (known[first, second], 1) if (first, second) in known else (known.get((second, first)), -1)
    if pair is None or not pair.n:
        return Cell("" if pair is None else UNKNOWN)
    better, worse = (pair.better, pair.worse)[::sign]
    return Cell(
        value(sign * pair.mean, combined.metric, sign=True),
        f"{better} : {worse}, p {p_value(pair.p_holm)}",
        sort=sign * pair.mean,
        note=f"better on {better}, worse on {worse} of {pair.n} data sets; p of this pair alone {p_value(pair.p)}",
        bold=pair.p_holm <= combined.alpha,
    )


def combined_csv(combined: Combined) -> str:
    """A line for each method and data set, and one for each method's mean; what is not known is nan."""
    text = io.StringIO(newline="")
    sheet = csv.writer(text, lineterminator="\n")
    sheet.writerow(COLUMNS)
    for method in combined.methods:
        for e in method.effects:
            alone = [e.n, e.mean, e.low, e.high, e.error, *[math.nan] * 6, method.ranks.get(e.data, math.nan)]
            sheet.writerow(map(csv_cell, [method.name, e.data, *alone, ""]))
        whole = [
            len(method.effects),
            method.mean,
            method.low,
            method.high,
            math.nan,
            method.p,
            method.p_holm,
            method.tau,
        ]
        whole += [method.next_low, method.next_high, method.p_unlike, method.rank]
        sheet.writerow(map(csv_cell, [method.name, "all", *whole, method.standing]))
    return text.getvalue()
