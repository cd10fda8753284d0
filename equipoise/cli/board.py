"""Records of many studies on one page: `equipoise board`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from .app import app, console


@app.command()
def board(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders that 'equipoise run' wrote, or folders of them.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what is written.")] = Path("runs/board"),
) -> None:
    """Put scores of methods on data sets on one page, ready to publish: board.html, board.csv and board.json.

    A row needs six finished seeds, the fingerprint of the images of each, and the version that trained them; what
    does not have them is refused, with the reason.
    """
    from ..front import board as make
    from ..report import print_board

    results = make(*folders)
    page = results.report(out)
    print_board(results.board, console)
    console.print(f"\nBoard: [bold]{escape(str(page))}[/]", soft_wrap=True)
