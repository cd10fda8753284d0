"""report.md: the report as text, for a pull request or a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...core.escaping import markdown as plain
from ...core.escaping import visible
from ..collect import flat
from ..collected import Collected
from ..data import data_notes
from ..provenance import provenance
from ..sections.section import Section
from .paper import Grid, paper_table
from .tables import Cell, class_table, ranked_table
from .words import last_line, title_of


def render_markdown(results: Collected, sections: Sequence[Section] = ()) -> str:
    """Question, verdict, tables, recipes, failures and where it all came from; further figures are in the page."""
    parts = [
        f"# {plain(results.question)}",
        f"Study {code(results.name)}, baseline {plain(results.baseline)}, metric: {title_of(results.metric).lower()}.",
        "## Verdict",
        "\n".join(f"- {plain(sentence)}" for sentence in (*results.verdict.sentences(), *data_notes(results))),
        "## What the verdict takes for granted",
        "\n".join(f"- {premise.name}: {plain(premise.words)}" for premise in results.premises),
        "## Ranking",
        _ranking(results),
        "Mean ± half of its 95 % interval over n seeds; Δ with its 95 % interval; a number in brackets is of seeds or "
        "pairs where it is not n. In bold the first tier of a column; nothing is bold where its methods "
        "are not separable.",
        "## As a paper prints it",
        render_grid(paper_table(results)),
        "## Accuracy of each class, %",
        _classes(results),
        "## Recipes",
        *_recipes(results),
        "## Runs that failed or are missing",
        _failures(results),
        "## Where this came from",
        "\n".join(f"- {plain(name)}: {plain(text)}" for name, text in provenance(results)),
        *(f"report.html also shows: {plain(s.title)}. {plain(s.sentence)}" for s in sections if s.further),
    ]
    return "\n\n".join(parts) + "\n"


def render_grid(grid: Grid) -> str:
    """A paper's table as Markdown, its caption below."""
    rows = [[bold(cell) for cell in row] for row in grid.rows]
    return f"{_grid([plain(h) for h in grid.header], grid.numeric, rows)}\n\n{plain(grid.caption)}"


def bold(cell: Cell) -> str:
    """A cell's text, its main part between asterisks where it is among the best.

    >>> bold(Cell("71.2", "± 0.8", bold=True))
    '**71.2** ± 0.8'
    """
    main = f"**{plain(cell.main)}**" if cell.bold else plain(cell.main)
    return " ".join(filter(None, (main, plain(cell.minor), plain(cell.second))))


def code(text: str) -> str:
    """A code span, with a fence longer than any run of backticks inside."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{visible(' '.join(text.split()))}{pad}{fence}"


def _grid(header: Sequence[str], numeric: Sequence[bool], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---:" if right else "---" for right in numeric], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ranking(results: Collected) -> str:
    table = ranked_table(results)
    rows = [[bold(cell) for cell in row.cells] for row in table.rows]
    return _grid([plain(c.title) for c in table.columns], [c.numeric for c in table.columns], rows)


def _classes(results: Collected) -> str:
    header, rows = class_table(results)
    if not rows:
        return "No run has finished yet."
    return _grid([plain(h) for h in header], [False] + [True] * (len(header) - 1),
                 [[plain(str(cell)) for cell in row] for row in rows])  # fmt: skip


def _recipes(results: Collected) -> list[str]:
    """The baseline in full; of the others, what they change."""
    reference = results.reference
    dials = [f"- {dial}: {code(choice)}" for dial, choice in flat(reference.recipe).items()]
    parts = [f"### {plain(reference.name)} (baseline)", "\n".join(dials)]
    for method in results.methods:
        if not method.is_baseline:
            changes = [f"- {dial}: {code(old)} → {code(new)}" for dial, old, new in method.changes]
            marks = [f"- not comparable in all: {', '.join(method.marks)}"] if method.marks else []
            parts += [f"### {plain(method.name)}", "\n".join(changes + marks) or "- the same recipe as the baseline"]
    return parts


def _failures(results: Collected) -> str:
    lines = [
        f"- {plain(run.method)}, seed {run.seed} ({code(run.key)}) failed: {plain(last_line(run.problem))}"
        for run in results.failed
    ]
    lines += [f"- {plain(run.method)}, seed {run.seed} ({code(run.key)}) is not there yet" for run in results.missing]
    again = "\n\nThe study's command with `--retry` tries failed runs again." if results.failed else ""
    return "\n".join(lines) + again or "None."
