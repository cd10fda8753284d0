"""Tables as papers print them: mean ± standard error, the first tier in bold.

A row names its number of seeds, its parameters and its recipe key. One study gives methods × metrics, several studies
of the same methods give methods × imbalance ratios.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import EquipoiseError
from ...core.escaping import csv_cell
from ..collect import flat
from ..collected import Collected, Estimate, Method
from .tables import SHORT, Cell, usual_metrics
from .words import UNKNOWN, heading, title_of, value


@dataclass(frozen=True)
class Grid:
    """Rows of cells under `header`; columns that are `numeric` stand to the right. `name` is for references to it."""

    name: str
    caption: str
    header: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]


def paper_table(results: Collected) -> Grid:
    """Methods × metrics, the study's own metric first, in the order of the ranking."""
    metrics = usual_metrics(results)
    metrics = [metric for metric in metrics if any(m.estimates[metric].n for m in results.methods)]
    rows = [
        (Cell(m.name), *(_cell(m, metric) for metric in metrics), *_identity([m.result.n], m.parameters, [m]))
        for m in results.methods
    ]
    caption = f"{_sentence(results.question)} {_legend(results)}"
    header = ("Method", *(heading(metric) for metric in metrics), "n", "Parameters", "Key")
    return Grid(results.name, caption, header, _sides(len(metrics)), tuple(rows))


def table_by_ratio(studies: Sequence[Collected]) -> Grid:
    """Methods × imbalance ratios, of studies that differ in their data alone.

    Studies of unlike metrics, or a method whose recipe differs in more than its task, are refused: one table would
    compare what is not alike.
    """
    if not studies:
        raise EquipoiseError("a table by ratio needs at least one study")
    metric = one_metric(studies)
    columns: dict[str, dict[str, Method]] = {}
    for results in studies:
        for method in results.methods:
            column = columns.setdefault(_task(method.recipe), {})
            if method.name in column:
                raise EquipoiseError(
                    f"two of the studies have {method.name} on {_task(method.recipe)}; give one of them"
                )
            column[method.name] = method
    names = list(dict.fromkeys(method.name for results in studies for method in results.methods))
    ordered = sorted(columns.items(), key=lambda item: _place(next(iter(item[1].values())).recipe))
    rows = [_ratio_row(name, [column.get(name) for _, column in ordered], metric) for name in names]
    where, titles = _titles([task for task, _ in ordered])
    caption = f"{title_of(metric)} {heading(metric).split()[-1]} {where}. {_legend(studies[0])}"
    header = ("Method", *titles, "n", "Parameters", "Key")
    return Grid("by_ratio", caption, header, _sides(len(ordered)), tuple(rows))


def one_metric(studies: Sequence[Collected]) -> str:
    metrics = dict.fromkeys(results.metric for results in studies)
    if len(metrics) > 1:
        raise EquipoiseError(f"the studies are judged by unlike metrics, {', '.join(metrics)}: give studies of one")
    return studies[0].metric


def _ratio_row(name: str, methods: Sequence[Method | None], metric: str) -> tuple[Cell, ...]:
    there = [method for method in methods if method]
    first = flat(_without_task(there[0].recipe))
    for other in there[1:]:
        second = flat(_without_task(other.recipe))
        unlike = [dial for dial in {**first, **second} if first.get(dial) != second.get(dial)]
        if unlike:
            raise EquipoiseError(
                f"{name} is not the same method in all studies: its recipes differ in {', '.join(unlike)}; "
                "give the methods different names, or studies of one recipe"
            )
    seeds = list(dict.fromkeys(method.result.n for method in there))
    cells = [Cell(UNKNOWN) if method is None else _cell(method, metric) for method in methods]
    return (Cell(name), *cells, *_identity(seeds, there[0].parameters, there))


def _without_task(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {dial: choice for dial, choice in recipe.items() if dial != "task"}


def _task(recipe: Mapping[str, Any]) -> str:
    """
    >>> _task({"task": {"name": "digits", "imbalance": "long_tailed", "ratio": 20.0}})
    'digits, long-tailed 20'
    """
    task = recipe.get("task") or {}
    kind = str(task.get("imbalance") or "as it is").replace("_", "-")
    ratio = f" {task.get('ratio', 1.0):g}" if task.get("imbalance") else ""
    return f"{task.get('name', 'data')}, {kind}{ratio}"


def _titles(tasks: Sequence[str]) -> tuple[str, list[str]]:
    """What the caption says of the data, and the columns' titles: the ratio alone where nothing else differs.

    >>> _titles(["digits, long-tailed 20", "digits, long-tailed 50"])
    ('on digits, long-tailed, by imbalance ratio', ['20', '50'])
    >>> _titles(["digits, long-tailed 20", "digits, step 20"])
    ('by data', ['digits, long-tailed 20', 'digits, step 20'])
    """
    split = [task.rpartition(" ") for task in tasks]
    if len({data for data, _, _ in split}) == 1 and all(ratio[0].isdigit() for _, _, ratio in split):
        return f"on {split[0][0]}, by imbalance ratio", [ratio for _, _, ratio in split]
    return "by data", list(tasks)


def _place(recipe: Mapping[str, Any]) -> tuple[str, str, float]:
    task = recipe.get("task") or {}
    return str(task.get("name", "")), str(task.get("imbalance") or ""), float(task.get("ratio") or 1.0)


def _cell(method: Method, metric: str) -> Cell:
    """A mean with its standard error; with the number of seeds only where the row's own n does not hold."""
    e = method.estimates[metric]
    if not e.n:
        return Cell(UNKNOWN)
    seeds = "" if e.n == method.result.n else f" ({e.n})"
    return Cell(value(e.mean, metric), f"± {value(e.error, metric)}{seeds}", bold=metric in method.leads)


def _identity(seeds: Sequence[int], parameters: int | None, methods: Sequence[Method]) -> tuple[Cell, ...]:
    n = "/".join(map(str, seeds))
    size = UNKNOWN if parameters is None else f"{parameters:,}"
    return Cell(n), Cell(size), Cell(" ".join(method.runs[0].key[:SHORT] for method in methods))


def _sides(numbers: int) -> tuple[bool, ...]:
    return (False, *[True] * (numbers + 2), False)


def _sentence(text: str) -> str:
    return text if text.rstrip().endswith((".", "?", "!")) else f"{text.rstrip()}."


def _legend(results: Collected) -> str:
    return (
        "Mean ± standard error over n seeds; in bold the first tier of a column that has several "
        f"(sign-flip tests, Holm-adjusted, {results.verdict.alpha:g}); the key is that of the first seed's run."
    )


def table_csv(studies: Sequence[Collected]) -> str:
    """One line for each study, method and metric, at full precision; what is not known is nan."""
    text = io.StringIO(newline="")
    sheet = csv.writer(text, lineterminator="\n")
    sheet.writerow(
        ["study", "task", "imbalance", "ratio", "method", "metric", "n", "mean", "standard_error", "low", "high"]
        + ["best_or_not_separable", "parameters", "key"]
    )
    for results in studies:
        for method in results.methods:
            for metric, e in method.estimates.items():
                sheet.writerow(map(csv_cell, _line(results, method, metric, e)))
    return text.getvalue()


def _line(results: Collected, method: Method, metric: str, e: Estimate) -> list[object]:
    task = method.recipe.get("task") or {}
    data = [task.get("name", ""), task.get("imbalance") or "", task.get("ratio", "")]
    parameters = math.nan if method.parameters is None else method.parameters
    best = "yes" if metric in method.leads else "no"
    numbers = [e.n, e.mean, e.error, e.low, e.high]
    return [results.name, *data, method.name, metric, *numbers, best, parameters, method.runs[0].key]
