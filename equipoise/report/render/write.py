"""Writing the report into its store, and showing the verdict on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...core.words import counted
from ...store import Store
from ..collect import collect
from ..collected import Collected, Method
from ..data import data_notes
from ..seal import seal_notes
from ..sections import sections_of
from .files import write_each
from .latex import render_latex
from .markdown import render_grid, render_markdown
from .page import render_page
from .paper import Grid, paper_table, table_by_ratio, table_csv
from .tables import ranked_table, results_csv
from .words import heading, interval, last_line, p_value, value

FAILURES_TOLD = 3  # below the verdict


def write_report(store: Store, results: Collected | None = None) -> Path:
    """Write report.html, report.md, results.csv, table.csv, table.tex and verdict.json; returns the page's path.

    `results` are those of `collect(store)`, where the caller has them already.

    Nothing in them depends on the time or the machine of writing: the same store gives the same bytes.
    """
    results = results or collect(store)
    verdict = {"study": results.name, "question": results.question, **results.verdict.to_dict()}
    verdict["sentences"] = results.verdict.sentences()
    verdict["premises"] = [asdict(premise) for premise in results.premises]
    verdict["seal"] = seal_notes(results.opened, results.rounds)
    store.write_text("results.csv", results_csv(results))
    store.write_json("verdict.json", verdict)
    sections = sections_of(store, results)
    store.write_text("table.csv", table_csv([results]))
    store.write_text("table.tex", render_latex(paper_table(results)))
    store.write_text("report.md", render_markdown(results, sections))
    store.write_text("report.html", render_page(results, sections))
    return store.path / "report.html"


def write_by_ratio(studies: Sequence[Collected], folder: Path) -> None:
    """Write by_ratio.md, by_ratio.tex and by_ratio.csv of studies that differ in their data alone."""
    grid = table_by_ratio(studies)
    contents = {"md": render_grid(grid) + "\n", "tex": render_latex(grid), "csv": table_csv(studies)}
    write_each(folder, "by_ratio", contents)


def print_grid(grid: Grid, console: Console) -> None:
    """A paper's table on a terminal, its caption below."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1))
    for title, numeric in zip(grid.header, grid.numeric, strict=True):
        table.add_column(Text(title), justify="right" if numeric else "left", no_wrap=title == grid.header[0])
    for row in grid.rows:
        table.add_row(*(Text(str(cell), style="bold" if cell.bold else "") for cell in row))
    console.print(table)
    console.print(Text(grid.caption, style="dim"))


def terminal_table(results: Collected) -> Table:
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


def _marks(results: Collected) -> Text | None:
    marked = [f"{m.name} ({', '.join(m.marks)})" for m in results.methods if m.marks]
    return Text(f"* unlike the baseline: {'; '.join(marked)}", style="dim") if marked else None


def _premises(results: Collected) -> Table:
    """One row each: its name, and in what way it is known."""
    table = Table.grid(padding=(0, 2, 0, 0))
    styles = {True: "green", False: "bold red", None: "yellow"}
    for premise in results.premises:
        table.add_row(Text(premise.name, style="dim"), Text(premise.words, style=styles[premise.holds]))
    return table


def failure_notes(results: Collected) -> list[str]:
    """What went wrong with the first runs that failed or are damaged; the page has them all."""
    first = results.failed[:FAILURES_TOLD]
    notes = [f"{run.method}, seed {run.seed} failed: {last_line(run.problem)}" for run in first]
    more = len(results.failed) - len(first)
    return notes + ([f"{counted(more, 'more run')} failed; the report says why."] if more else [])


def print_verdict(results: Collected, console: Console) -> None:
    """Question, ranked table, the verdict's sentences, and what they take for granted."""
    console.print(Text(results.question, style="bold"))
    console.print()
    console.print(terminal_table(results))
    console.print()
    notes = (*data_notes(results), *seal_notes(results.opened, results.rounds))
    for sentence in (*results.verdict.sentences(), *failure_notes(results), *notes):
        console.print(Text(f"• {sentence}"))
    console.print()
    console.print(_premises(results))
