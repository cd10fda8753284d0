"""Using a trained model: `equipoise predict` and `export`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.markup import escape

from ..core import EquipoiseError, known
from ..core.escaping import visible
from ..core.terminal import Terminal
from ..core.words import counted
from .app import Device, Peek, app, console
from .results import store_in

Model = Annotated[
    Path,
    typer.Argument(help="A saved model, or the folder that 'equipoise run' wrote.", show_default=False),
]
MethodOption = Annotated[
    str | None, typer.Option("--method", help="Of a study: the method; default the first of the verdict's ranking.")
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", help="Of a study: the seed; default the one with the median validation score."),
]


@app.command()
def predict(
    model: Model,
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write; default the terminal.")] = None,
    form: Annotated[str, typer.Option("--format", help="csv, or jsonl for JSON lines.")] = "csv",
    top: Annotated[int, typer.Option(min=1, help="So many of the most probable classes.")] = 1,
    prior: Annotated[
        str | None,
        typer.Option(
            help='How often each class comes there: "cat=0.9,dog=0.1", uniform, training, or a JSON or CSV file.'
        ),
    ] = None,
    method: MethodOption = None,
    seed: SeedOption = None,
    device: Device = None,
    peek: Peek = False,
) -> None:
    """Say of each image which class it shows, with calibrated probabilities.

    MODEL is a folder that 'equipoise export' saved, or a study's own; the second needs its data. Folders of images are
    looked through. Files that cannot be read stop nothing: they have an error in their row, are listed at the end, and
    the command ends with 1.
    """
    from ..deploy import find_images, predicted_parts
    from ..deploy.predictions import FORMATS, Writer

    known("format", form, FORMATS)
    used = _opened(model, method, seed, device, peek)
    weights, files = used.prior(prior), find_images(images)
    if not files.paths and not files.problems:
        raise EquipoiseError(f"there are no images in {', '.join(map(str, images))}")
    warnings.filterwarnings("ignore", module="PIL")  # of what is then read all the same or refused
    total, failed = 0, []
    with _written(out) as file:
        writer = Writer(file, form, min(top, len(used.class_names)))
        for part in predicted_parts(used, files, weights):
            writer.write(part.rows(top))
            total += len(part)
            failed += [f"{name}: {why}" for name, why in zip(part.images, part.errors, strict=True) if why is not None]
    _tell(total, failed, out)


def _tell(total: int, failed: list[str], out: Path | None) -> None:
    """On stderr, so that what a pipe carries is the table alone."""
    said = Terminal(stderr=True)
    if out is not None:
        said.print(f"{counted(total - len(failed), 'image')} classified: [bold]{escape(str(out))}[/]", soft_wrap=True)
    if failed:
        lines = "\n  ".join(escape(visible(line)) for line in failed)
        said.print(f"{counted(len(failed), 'file')} could not be read:\n  {lines}", soft_wrap=True)
        raise typer.Exit(1)


@contextmanager
def _written(out: Path | None) -> Iterator[TextIO]:
    """The terminal, or a file that is there once it is whole."""
    if out is None:
        yield sys.stdout
        return
    from ..store import explained

    aside = out.with_name(f".{out.name}.{os.getpid()}")
    with explained(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(aside, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                yield file
            os.replace(aside, out)
        finally:
            aside.unlink(missing_ok=True)


@app.command()
def export(
    model: Model,
    to: Annotated[str, typer.Option(help="model, onnx, torch_export, torchscript or state_dict.")] = "model",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file; for a model the folder.")] = None,
    layout: Annotated[str, typer.Option(help="Of the images a file takes: nhwc or nchw.")] = "nhwc",
    method: MethodOption = None,
    seed: SeedOption = None,
    peek: Peek = False,
) -> None:
    """Take a trained model out of its study: as a folder for 'equipoise predict', or as a file for other programs.

    A file takes uint8 images, any number at a time, and gives calibrated probabilities: normalization and corrections
    are inside. It is run, and compared with the model, before it is kept. The lines printed use it without Equipoise.
    """
    from ..deploy.export import WAYS, export
    from ..deploy.scripts import script_for

    known("format", to, ("model", *WAYS))
    used = _opened(model, method, seed, "cpu", peek)
    if to == "model":
        folder = used.save(out or Path("model"))
        console.print(f"Model: [bold]{escape(str(folder))}[/]; its README.md says what it is.", soft_wrap=True)
        console.print(f"  equipoise predict {escape(str(folder))} photos", soft_wrap=True)
        return
    path = export(used, to, out, layout=layout)
    console.print(f"Written, run and compared with the model: [bold]{escape(str(path))}[/]\n", soft_wrap=True)
    console.print(escape(visible(script_for(used, to, path, layout), lines=True)), soft_wrap=True, highlight=False)


def _opened(place: Path, method: str | None, seed: int | None, device: str | None, peek: bool) -> Any:
    """The model in a folder that was saved, or of a run of a study."""
    from ..deploy import TrainedModel, is_model
    from ..front import Results
    from ..study import best_device

    if not is_model(place):
        return Results(store_in(place), peek=peek).model(method, seed, device)
    if method is not None or seed is not None:
        raise EquipoiseError(f"{place} is one saved model; --method and --seed choose among the runs of a study")
    return TrainedModel.load(place, best_device(device))
