"""combined.html, combined.csv and combined.json of several studies, and the same on a terminal."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...core.words import counted
from ..combination import Combination
from ..figures.combined import effect_plot, effect_words, forest_plot, rank_plot
from ..sections.section import Sorted
from .combined_tables import combined_csv, data_table, method_table, pair_matrix
from .combined_words import sentences
from .files import pretty_json, write_each
from .shell import rendered
from .svg import both
from .tables import Cell
from .words import UNKNOWN, interval, number, p_value, title_of


def title(combination: Combination) -> str:
    combined = combination.combined
    others = len(combined.methods) - 1
    return f"{counted(others, 'method')} against {combined.baseline} on {counted(len(combined.data), 'data set')}"


def render_combined(combination: Combination) -> str:
    """The page, which needs nothing else. All text is escaped."""
    combined, ranks = combination.combined, both(partial(rank_plot, combination.combined))
    contents = [("methods", "Methods"), ("data", "Data sets"), ("pairs", "Pairs")]
    contents += [*([("ranks", "Ranks")] if ranks else []), ("sources", "Sources")]
    content = {
        "title": title(combination),
        "name": "several data sets",
        "contents": contents,
        "sentences": sentences(combined),
        "facts": _facts(combination),
        "notices": combination.notices,
        "effects": both(partial(effect_plot, combined)),
        "method_table": method_table(combined),
        "data_table": data_table(combined),
        "forests": [figure for method in combined.methods if (figure := forest_plot(combined, method))],
        "pair_matrix": pair_matrix(combined),
        "pairs": len(combined.pairs),
        "alpha": combined.alpha,
        "ranks": ranks,
        "sources": _sources(combination),
    }
    return rendered("combined.html", ("page.js",), content)


def _facts(combination: Combination) -> list[tuple[str, str]]:
    seeds = [data.seeds for data in combination.data]
    span = str(min(seeds)) if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
    return [
        ("Data sets", "; ".join(combination.combined.data)),
        ("Judged by", title_of(combination.combined.metric).lower()),
        ("Seeds on each", span),
    ]


def _sources(combination: Combination) -> Sorted:
    rows = [
        [
            Cell(data.name, sort=data.name),
            Cell(", ".join(data.studies), sort=data.studies[0]),
            Cell(str(data.classes), sort=data.classes),
            Cell(str(data.seeds), sort=data.seeds),
            Cell(str(len(data.methods)), sort=len(data.methods)),
        ]
        for data in combination.data
    ]
    header = ["Data set", "Study", "Classes", "Runs of the baseline", "Methods"]
    return Sorted(header, rows, "The studies that count", texts=2)


def write_combined(combination: Combination, folder: Path) -> Path:
    """Write combined.html, combined.csv and combined.json into `folder`; returns the page's path."""
    plain = {
        **combination.combined.to_dict(),
        "sentences": sentences(combination.combined),
        "notices": combination.notices,
        "left_out": dict(combination.left_out),
        "studies": {data.name: data.studies for data in combination.data},
    }
    contents = {
        "json": pretty_json(plain),
        "csv": combined_csv(combination.combined),
        "html": render_combined(combination),
    }
    write_each(folder, "combined", contents)
    return folder / "combined.html"


def print_combined(combination: Combination, console: Console) -> None:
    """The table of methods, the sentences, and what to know before believing them."""
    console.print(Text(title(combination), style="bold"))
    console.print()
    console.print(_terminal_table(combination))
    console.print()
    for sentence in (*sentences(combination.combined), *combination.notices):
        console.print(Text(f"• {sentence}"))


def _terminal_table(combination: Combination) -> Table:
    combined = combination.combined
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for heading in ("method", "data sets", f"mean Δ to {combined.baseline}", "p", "a further one", "rank", "standing"):
        text = heading in ("method", "standing")
        table.add_column(Text(heading), justify="left" if text else "right", no_wrap=True)
    for method in combined.methods:
        style = {"better": "bold green", "worse": "red", "baseline": "cyan"}.get(method.standing, "")
        known = bool(method.effects)
        foreseen = math.isfinite(method.next_low)
        further = interval(method.next_low, method.next_high, combined.metric, sign=True) if foreseen else UNKNOWN
        table.add_row(
            Text(method.name, style=style),
            Text(str(len(method.effects)) if known else UNKNOWN),
            Text(effect_words(method, combined.metric) if known else UNKNOWN, style=style),
            Text(p_value(method.p_holm)),
            Text(further, style="dim"),
            Text(number(method.rank, 1)),
            Text(method.standing, style=style),
        )
    return table
