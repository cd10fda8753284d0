"""What is in a folder of images: `equipoise audit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ..core.terminal import Terminal
from .app import Device, app, console


@app.command()
def audit(
    path: Annotated[Path, typer.Argument(help="A folder with one folder a class, or a table.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the page; default audits/NAME.")] = None,
    group: Annotated[str | None, typer.Option(help="A regular expression on paths: what belongs together.")] = None,
    features: Annotated[str, typer.Option(help="What labels are judged by: auto, pixels or none.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON rather than in words.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where something serious is found.")] = False,
    device: Device = None,
) -> None:
    """Look at every image before training: what cannot be read, is there twice, or may have a wrong label.

    FOLDER has one folder a class, perhaps inside train, val and test; or it is a CSV or Parquet file with columns for
    path and label, and perhaps group and split. Writes audit.html and audit.json; groups.csv, which keeps copies on
    one side of a split; leave_out.csv, the files that cannot be read; and files.csv, what every file was, so that later
    changes are noticed. docs/your_images.md explains all of it.
    """
    from ..auditing import audit as look_through
    from ..auditing import print_audit
    from ..study import OnTerminal, best_device

    screen = Terminal(stderr=True)  # so that JSON on the standard output stays JSON
    with OnTerminal(screen).stages() as progress:
        found = look_through(path, group=group, features=features, device=best_device(device), progress=progress)
    page = found.write(out or Path("audits") / found.base.name)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=1))
    else:
        print_audit(found, console)
        console.print(f"\nPage: [bold]{escape(str(page))}[/]", soft_wrap=True)
    if strict and found.is_serious:
        raise typer.Exit(1)
