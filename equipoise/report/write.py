"""Writing the report into its store, and showing the verdict on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..store import Store
from .collect import Results, collect
from .markdown import render_markdown
from .page import render_page
from .tables import ranked_table, results_csv


def write_report(store: Store) -> Path:
    """Write report.html, report.md, results.csv and verdict.json; returns the path of the page.

    Nothing in them depends on the time or the machine of writing: the same store gives the same bytes.
    """
    results = collect(store)
    verdict = {"study": results.name, "question": results.question, **results.verdict.to_dict()}
    verdict["sentences"] = results.verdict.sentences()
    store.write_text("results.csv", results_csv(results))
    store.write_text("verdict.json", json.dumps(verdict, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    store.write_text("report.md", render_markdown(results))
    store.write_text("report.html", render_page(results))
    return store.path / "report.html"


def terminal_table(results: Results) -> Table:
    """The ranked table's main columns, tiers apart. Names are shown as they are, never read as markup."""
    ranked = ranked_table(results)
    shown = [i for i, column in enumerate(ranked.columns) if column.primary]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for i in shown:
        column = ranked.columns[i]
        table.add_column(Text(column.title), justify="right" if column.numeric else "left")
    for _, rows in ranked.tiers():
        for place, row in enumerate(rows, start=1):
            style = {"better": "bold green", "worse": "red", "baseline": "cyan"}.get(row.method.result.standing, "")
            cells = [_stacked(row.cells[i].main, row.cells[i].minor, style) for i in shown]
            table.add_row(*cells, end_section=place == len(rows))
    return table


def print_verdict(results: Results, console: Console) -> None:
    """Question, ranked table, and the verdict's sentences."""
    console.print(Text(results.question, style="bold"))
    console.print()
    console.print(terminal_table(results))
    for sentence in results.verdict.sentences():
        console.print(Text(f"• {sentence}"))


def _stacked(main: str, minor: str, style: str) -> Text:
    return Text(main, style=style).append(f"\n{minor}" if minor else "", style="dim")
