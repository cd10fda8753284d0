"""An audit on a terminal: what was found, the gravest first, and how large the classes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .findings import Gravity

if TYPE_CHECKING:
    from .result import Audit

COLOURS: dict[Gravity, str] = {"serious": "red", "warning": "yellow", "note": "dim"}
CASES = 10  # of a finding; the page has all of them
CLASSES = 12
BAR = 24


def print_audit(audit: Audit, console: Console) -> None:
    console.print(Text(f"{audit.name}: {audit.summary}", style="bold"))
    console.print(_classes(audit))
    for finding in audit.findings:
        console.print()
        console.print(Text.assemble((f"{finding.gravity}: ", COLOURS[finding.gravity]), (finding.title, "bold")))
        console.print(Text(finding.meaning, style="dim"))
        for row in finding.rows[:CASES]:
            console.print(Text(f"  {row.text}"), soft_wrap=True)
        if len(finding.rows) > CASES:
            console.print(Text(f"  and {len(finding.rows) - CASES:,} more, on the page", style="dim"))
    if not audit.findings:
        console.print("Nothing to complain of.")
    console.print()
    console.print(Text(audit.about_labels, style="dim"))


def _classes(audit: Audit) -> Table:
    """The largest and the smallest classes with bars."""
    parts = audit.facts.listing.parts
    rows = sorted(audit.classes, key=lambda row: -sum(row[part] for part in parts))
    most = max((sum(row[part] for part in parts) for row in rows), default=0)
    table = Table(box=None, pad_edge=False, show_header=len(parts) > 1)
    table.add_column("class", max_width=28, no_wrap=True, overflow="ellipsis")
    for part in parts:
        table.add_column(part, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    half = CLASSES // 2
    for row in rows if len(rows) <= CLASSES else [*rows[:half], None, *rows[-half:]]:
        if row is None:
            table.add_row(Text(f"… {len(rows) - 2 * half:,} more", style="dim"))
            continue
        total = sum(row[part] for part in parts)
        bar = Text("━" * max(round(BAR * total / max(most, 1)), 1 if total else 0), style="cyan")
        table.add_row(Text(row["class"]), *(f"{row[part]:,}" for part in parts), bar)
    return table
