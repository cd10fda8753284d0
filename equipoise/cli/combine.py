"""Several studies together: `equipoise combine`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from .app import Peek, app, console


@app.command()
def combine(
    studies: Annotated[
        list[Path], typer.Argument(help="Folders that 'equipoise run' wrote, or folders of them.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what is written.")] = Path("runs/combined"),
    baseline: Annotated[
        str | None, typer.Option(help="What all methods are compared with; default the studies' own.")
    ] = None,
    peek: Peek = False,
) -> None:
    """Say what studies of the same methods show together: on several data sets, imbalance ratios or networks.

    Each method's mean difference to the baseline over data sets with its interval, what a further data set would show,
    every pair of methods, ranks, and which data sets disagree. Writes combined.html, combined.csv and combined.json.
    """
    from ..front import combine as combine_results
    from ..report import print_combined

    results = combine_results(*studies, baseline=baseline, peek=peek)
    page = results.report(out)
    print_combined(results.combination, console)
    console.print(f"\nReport: [bold]{escape(str(page))}[/]", soft_wrap=True)
