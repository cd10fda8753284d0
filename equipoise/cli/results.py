"""What came out of studies: `equipoise report`, `analyze` and `status`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from ..core import EquipoiseError
from .app import Device, Folder, Peek, app, console, told_how_to_go_on


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that 'equipoise run' wrote.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the table of several studies.")] = None,
    peek: Peek = False,
) -> None:
    """Write report.html, report.md and the tables again from the stored runs, and show the verdict.

    A study that has not ended is reported with --peek only, and every later report says so.

    Several folders, of studies that differ in their data alone, also give one table, methods × imbalance ratios; with
    --out it is written to by_ratio.md, by_ratio.tex and by_ratio.csv there.
    """
    from ..front import Results
    from ..report import print_grid, table_by_ratio, write_by_ratio

    studies = []
    for folder in folders:
        results = Results(store_in(folder), peek=peek)
        show_report(results)
        studies.append(results.collected)
    if len(studies) > 1:
        console.print()
        print_grid(table_by_ratio(studies), console)
        if out:
            write_by_ratio(studies, out)


def store_in(folder: Path) -> Any:
    """The results in a folder that is there."""
    from ..store import Store

    if not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise EquipoiseError(f"{folder} is {what}; give the folder that 'equipoise run' wrote, such as runs/demo")
    return Store(folder)


def show_report(results: Any) -> None:
    """Write the report of a study and show its verdict."""
    from ..report import print_verdict

    page = results.report()
    print_verdict(results.collected, console)
    console.print(f"\nReport: [bold]{escape(str(page))}[/]", soft_wrap=True)


@app.command()
def analyze(
    folder: Folder,
    transfer: Annotated[
        list[str] | None, typer.Option(help="A task on which a linear classifier of the features is tried.")
    ] = None,
    further: Annotated[
        list[str] | None, typer.Option(help="A folder of further test images, with one folder per class of the task.")
    ] = None,
    corruptions: Annotated[bool, typer.Option("--corruptions", help="Errors on corrupted test images too.")] = False,
    imagenet_c: Annotated[
        str | None, typer.Option(help="The folder of ImageNet-C: errors there, relative to AlexNet's.")
    ] = None,
    images: Annotated[
        int, typer.Option(min=10, help="Training and test images to look at, at most, of each.")
    ] = 10_000,
    tsne: Annotated[bool, typer.Option("--tsne", help="Draw features by t-SNE rather than by PCA.")] = False,
    pooled: Annotated[bool, typer.Option("--pooled", help="Compare maps by their means over positions.")] = False,
    device: Device = None,
    peek: Peek = False,
) -> None:
    """Say what the methods of a study did to predictions and representations, and add it to the report.

    Agreement between runs, class separation and sparsity of each layer, similarity of layers (CKA), spectra and
    densities of the features; with --transfer, --further and --corruptions what they are worth elsewhere. Stop it at
    any moment and give the same command again: no run is measured twice. docs/analysis.md explains every number.
    """
    from ..front import Results
    from ..report import write_report
    from ..study import Asked, OnTerminal, analyze_study, best_device, print_analysis

    results = Results(store_in(folder), peek=peek)
    store = results.store
    asked = Asked(images, tuple(transfer or ()), corruptions, tsne, tuple(further or ()), imagenet_c, pooled)
    with told_how_to_go_on(lambda: "Stopped; what was measured is kept."):
        analysis = analyze_study(store, asked, best_device(device), OnTerminal(console), peek=results.early)
    page = write_report(store)
    print_analysis(analysis, console)
    console.print(f"\nReport: [bold]{escape(str(page))}[/]", soft_wrap=True)


@app.command()
def status(folder: Folder) -> None:
    """Say how a study is going: its runs by method, those under way with their epochs, the best so far, time left."""
    from ..report import print_status, status_of

    print_status(status_of(store_in(folder)), console)
