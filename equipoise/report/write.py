"""Writing the report into its store, and showing the verdict on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..store import Store
from .collect import Method, Results, collect
from .markdown import render_markdown
from .page import render_page
from .tables import ranked_table, results_csv
from .words import heading, interval, p_value, value


def write_report(store: Store, results: Results | None = None) -> Path:
    """Write report.html, report.md, results.csv and verdict.json; returns the path of the page.

    `results` are those of `collect(store)`, where the caller has them already.

    Nothing in them depends on the time or the machine of writing: the same store gives the same bytes.
    """
    results = results or collect(store)
    verdict = {"study": results.name, "question": results.question, **results.verdict.to_dict()}
    verdict["sentences"] = results.verdict.sentences()
    store.write_text("results.csv", results_csv(results))
    store.write_text("verdict.json", json.dumps(verdict, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    store.write_text("report.md", render_markdown(results))
    store.write_text("report.html", render_page(results))
    return store.path / "report.html"


def terminal_table(results: Results) -> Table:
    """What fits 80 columns of the ranked table, a line between tiers. Names are shown as they are, never as markup."""
    metric = results.metric
    caption = _marks(results)
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, caption=caption, caption_justify="left")
    for title in ("#", "method", "n", heading(metric), f"Δ to {results.baseline}", "p", "standing"):
        text = title in ("method", "standing")
        table.add_column(Text(title), justify="left" if text else "right", no_wrap=title != heading(metric))
    for _, rows in ranked_table(results).tiers():
        for place, row in enumerate(rows, start=1):
            table.add_row(*_cells(row.method, metric), end_section=place == len(rows))
    return table


def _cells(method: Method, metric: str) -> list[Text]:
    r = method.result
    style = {"better": "bold green", "worse": "red", "baseline": "cyan"}.get(r.standing, "")
    reached = f"± {value((r.high - r.low) / 2, metric)}" if r.n else ""
    between = interval(r.diff_low, r.diff_high, metric, sign=True) if r.n_pairs else ""
    return [
        Text(str(method.rank + 1)),
        Text(method.name + (" *" if method.marks else ""), style=style),
        Text(str(r.n)),
        Text(value(r.mean, metric), style=style).append(f" {reached}", style="dim"),
        Text(value(r.difference, metric, sign=True), style=style).append(f" {between}", style="dim"),
        Text(p_value(r.p_holm)),
        Text(r.standing, style=style),
    ]


def _marks(results: Results) -> Text | None:
    marked = [f"{m.name} ({', '.join(m.marks)})" for m in results.methods if m.marks]
    return Text(f"* unlike the baseline: {'; '.join(marked)}", style="dim") if marked else None


def print_verdict(results: Results, console: Console) -> None:
    """Question, ranked table, and the verdict's sentences."""
    console.print(Text(results.question, style="bold"))
    console.print()
    console.print(terminal_table(results))
    console.print()
    for sentence in results.verdict.sentences():
        console.print(Text(f"• {sentence}"))
