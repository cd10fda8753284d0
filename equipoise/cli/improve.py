"""`equipoise improve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ..core import EquipoiseError
from .app import Device, app, console

if TYPE_CHECKING:
    from ..improvement import Improvement
    from ..improvement.networks import Origin


@app.command()
def improve(
    checkpoint: Annotated[
        Path, typer.Argument(help="Weights of a trained network (.safetensors, .pt), or a .pt2.", show_default=False)
    ],
    data: Annotated[
        Path, typer.Option(help="Images it was not trained on: one folder for each class.", show_default=False)
    ],
    model: Annotated[
        str | None, typer.Option(help="resnet32, timm/NAME, torchvision/NAME, or module:function.")
    ] = None,
    classes: Annotated[
        Path | None, typer.Option(help="A file with a class in each line; default the folders, in order of name.")
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side of the square that the network sees.")] = None,
    resize: Annotated[int | None, typer.Option(min=1, help="Short side of an image before the square is cut.")] = None,
    mean: Annotated[str | None, typer.Option(help="Of each channel, from 0 to 1: 0.485,0.456,0.406")] = None,
    std: Annotated[str | None, typer.Option(help="Likewise: 0.229,0.224,0.225")] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="balanced_accuracy (default), accuracy (default with a prior) or nll."),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="Class shares where it will be used: cat=0.9,dog=0.1 or 0.9,0.1, uniform, or a file."),
    ] = None,
    train_counts: Annotated[
        str | None, typer.Option(help="Training images of each class: 500,50,5 or the folder of them.")
    ] = None,
    unlabelled: Annotated[
        Path | None, typer.Option(help="Images from where it will be used; the class shares are estimated.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images at a time.")] = 128,
    seed: Annotated[int, typer.Option(min=0, help="Decides which half of the images is chosen on.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default NAME_improved.")] = None,
    device: Device = None,
) -> None:
    """Correct a trained network without training it: example weighing, tau-norm, logit adjustment, temperature.

    Every combination is fitted on one half of the images, the best is chosen there, and what it is worth is told on the
    other half. If that is surely better, the folder gets the improved weights and a script that uses them; of a network
    of equipoise also a model for 'equipoise predict' and 'equipoise export'.
    """
    from ..imbalance.prior import read_prior
    from ..improvement import asked
    from ..improvement import improve as improve_network
    from ..improvement.images import class_folders
    from ..improvement.networks import load_network
    from ..improvement.write import write_improvement
    from ..study import best_device

    if not checkpoint.is_file():
        raise EquipoiseError(f"{checkpoint} is not a file; give the checkpoint of a trained network")
    names = class_folders(data) if classes is None else asked.class_names(classes)
    origin = load_network(checkpoint, model, len(names))
    known_counts = None if train_counts is None else asked.counts(train_counts, names)
    shares = read_prior(prior, names, known_counts)
    with console.status("…") as status:
        images, prepared = asked.images_for(origin, data, names, size, resize, mean, std, batch_size)
        improvement = improve_network(
            origin.network.to(best_device(device)),
            data,
            metric=metric,
            class_counts=known_counts,
            prior=None if shares is None else shares.tolist(),
            unlabelled=unlabelled,
            images=images,
            class_names=names,
            seed=seed,
            say=status.update,
        )
    folder = write_improvement(improvement, out or Path(f"{checkpoint.stem}_improved"), origin)
    console.print(escape(str(improvement)), soft_wrap=True)
    console.print(escape(prepared))
    what = "The improved network" if improvement.helped else "The report alone"
    console.print(f"\n{what}: [bold]{escape(str(folder))}[/]", soft_wrap=True)
    if improvement.helped:
        console.print(escape(_kept_model(improvement, origin, folder, data, known_counts)))


def _kept_model(improvement: Improvement, origin: Origin, folder: Path, data: Path, counts: list[int] | None) -> str:
    """Keep the network for 'equipoise predict' too, where that can be done; what came of it, in words."""
    from ..improvement.model import model_of

    try:
        model = model_of(improvement, origin, data, counts).save(folder / "model")
    except EquipoiseError as error:
        return f"It is no model for 'equipoise predict': {error}. {folder / 'use.py'} uses it."
    return f"'equipoise predict {model} IMAGES' and 'equipoise export {model}' use it."
