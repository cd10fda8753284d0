"""What there is: `equipoise methods`, `show`, `presets`, `tasks`, `norms` and `version`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from .. import __version__
from ..core import METHOD_KINDS, Card, EquipoiseError, card, cards
from ..core.docstrings import reflowed
from ..core.formulas import plain_text
from ..core.words import counted
from .app import app, console

if TYPE_CHECKING:
    from ..data.sources import Official


@app.command()
def methods(kind: Annotated[str | None, typer.Argument(help=f"One of: {', '.join(METHOD_KINDS)}.")] = None) -> None:
    """List the methods, of all kinds or of one."""
    for each in (kind,) if kind else METHOD_KINDS:
        entries = cards(each)
        if not entries:
            continue
        table = Table(title=each, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True, min_width=18, style="cyan")
        table.add_column()
        for entry in entries:
            parameters = _call(entry).removeprefix(entry.name)
            table.add_row(entry.name, escape(entry.summary) + (f"\n[dim]{escape(parameters)}[/]" if parameters else ""))
        console.print(table)
        console.print()


@app.command()
def show(name: Annotated[str, typer.Argument(help="A method's name, e.g. ldam.", show_default=False)]) -> None:
    """Explain one method: formula, parameters, where its defaults come from, how it differs from its paper."""
    import inspect

    entry = card(name)
    console.print(f"[bold]{escape(_call(entry))}[/]  ({entry.kind})\n")
    console.print(escape(reflowed(plain_text(inspect.getdoc(entry.factory) or ""), console.width)))
    if entry.companions:
        pairs = ", ".join(f"{dial} = {value!r}" for dial, value in entry.companions.items())
        console.print(f"\nIts companions, where you choose nothing else: {escape(pairs)}")
    if entry.arxiv:
        console.print(f"\narXiv:{entry.arxiv} ({entry.year})")


@app.command()
def presets() -> None:
    """List the presets: rows of the papers' tables by their names there, for `preset = "…"` in a study."""
    from ..study import PRESETS

    source = None
    table = Table(box=None, pad_edge=False, show_header=False)
    for preset in PRESETS.values():
        if preset.source != source:
            source = preset.source
            table.add_row(f"\n[bold]{escape(source)}[/]")
        table.add_row(escape(preset.name), escape(", ".join(f"{k} = {v!r}" for k, v in preset.options.items())))
    console.print(table)


@app.command()
def tasks() -> None:
    """List the data sets, and say which are on this machine."""
    from ..data.sources import OFFICIAL

    table = Table("task", "here", "what it is", box=None, pad_edge=False)
    for entry in cards("task"):
        published = OFFICIAL.get(entry.name)
        place = f"\n[dim]files in {published.place}[/]" if published else ""
        table.add_row(entry.name, _is_here(entry, published), escape(entry.summary) + place)
    console.print(table)
    console.print(
        "\nData is looked for under EQUIPOISE_DATA, then in your cache folder, then where the system keeps it. "
        "`equipoise show NAME` says which files a set has."
    )


def _is_here(entry: Card, published: Official | None) -> str:
    """Whether a task can be loaded; the files of a published set are looked for and not read."""
    if any(p.default is p.empty for p in entry.parameters.values()):
        return "yours"  # it is told where
    if published is not None:
        return "yes" if published.is_here else "no"
    try:
        entry.factory()
        return "yes"
    except EquipoiseError:
        return "no"


@app.command()
def norms(
    model: Annotated[str, typer.Argument(help="A network, e.g. resnet32 or timm/resnet50.", show_default=False)],
    batch_size: Annotated[int, typer.Option(min=1, max=1_000_000, help="Examples that a norm sees at once.")] = 128,
    size: Annotated[int, typer.Option(min=1, max=1024, help="Height and width of the images.")] = 32,
) -> None:
    """Say which norm suits a network and batch size, and whether decay of γ and β can act on it.

    Decay of a norm's γ and β changes what the network computes only where a path leads from that norm to the output
    that crosses no other norm.
    """
    import torch

    from ..models import create_model
    from ..norms import advise_norm, is_norm, unshielded_affine

    network = create_model(model, 10)
    count = sum(is_norm(module) for module in network.modules())
    unshielded = unshielded_affine(network, torch.randn(2, 3, size, size))
    console.print(
        f"{escape(model)} has {counted(count, 'norm')}; "
        f"from {len(unshielded)} a path to the output crosses no other norm:"
    )
    console.print(f"  {escape(', '.join(unshielded) or 'none')}\n")
    advice = advise_norm(batch_size, residual=len(unshielded) > count / 4)
    console.print(f"For batches of {batch_size}, and a network that overfits, start from")
    console.print(f'  norm = "{escape(advice.norm)}"\n  affine_decay = {str(advice.affine_decay).lower()}')
    if advice.tune_example_weight:
        console.print('  posthoc = "example_weighing"')
    console.print("because, in the experiments of Summers and Dinneen (2020),")
    for reason in advice.reasons:
        console.print(f"  • {escape(reason)}")


@app.command()
def version() -> None:
    """Print the version."""
    console.print(__version__)


def _call(entry: Card) -> str:
    """The method as a recipe writes it, with its defaults."""
    parts = [n if p.default is p.empty else f"{n}={p.default!r}" for n, p in entry.parameters.items()]
    return f"{entry.name}({', '.join(parts)})" if parts else entry.name
