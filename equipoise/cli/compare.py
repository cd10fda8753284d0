"""From a folder of images to a model: `equipoise compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from .app import Address, Device, Engine, Workers, app, console, start_early, told_how_to_go_on
from .results import show_report


@app.command()
def compare(
    folder: Annotated[
        Path, typer.Argument(help="A folder with one folder per class, or a CSV of path and label.", show_default=False)
    ],
    minutes: Annotated[float, typer.Option(min=0.1, help="How long it may take, about.")] = 20.0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default runs/compare_NAME.")] = None,
    group: Annotated[str | None, typer.Option(help="A regular expression on paths: what belongs together.")] = None,
    workers: Workers = None,
    device: Device = None,
    engine: Engine = "local",
    address: Address = None,
) -> None:
    """Find out which method suits your images, with evidence, and keep the best network.

    Looks through the folder first; then trains a shortlist of methods, on the features of a pretrained network where
    'equipoise[pretrained]' is installed, with as many seeds as the time allows; ends with a verdict, a report, and the
    best model, for 'equipoise predict' and 'equipoise export'. Test images are held out before anything is trained.
    Stop it at any moment: the same command goes on.
    """
    start_early(engine, address, device, workers)
    from ..front import compare as compare_methods
    from ..study import OnTerminal

    with told_how_to_go_on(lambda: "Stopped; finished runs are kept."):
        comparison = compare_methods(
            folder,
            minutes,
            out,
            group=group,
            device=device,
            workers=workers,
            engine=engine,
            address=address,
            listener=OnTerminal(console),
        )
    show_report(comparison.results)
    console.print(f"{comparison.model.description.promise}\n")
    model = escape(str(comparison.folder / "model"))
    console.print(f"Model:  [bold]{model}[/], to be used with 'equipoise predict {model} IMAGES'", soft_wrap=True)
