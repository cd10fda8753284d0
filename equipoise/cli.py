"""The command line, thin: it reads what was asked, calls the parts, and says how it went.

Exit codes: 0 all well; 1 some runs failed; 2 a mistake in what was asked, told in words; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import __version__
from .core import KINDS, Card, EquipoiseError, card, cards

app = typer.Typer(
    name="equipoise",
    help="Train image classifiers that treat their classes evenly, and find out, with evidence, what your data wants.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console(highlight=False)

METHOD_KINDS = tuple(kind for kind in KINDS if kind not in ("model", "task", "schedule"))

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results; default runs/NAME.")]
Workers = Annotated[int | None, typer.Option("--workers", "-j", min=1, help="Worker processes; default one a core.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; default a GPU if there is one.")]
Folder = Annotated[Path, typer.Argument(help="The folder that 'equipoise run' wrote.", show_default=False)]


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study as TOML; studies/ has examples.", show_default=False)],
    out: Out = None,
    workers: Workers = None,
    device: Device = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try failed runs again.")] = False,
) -> None:
    """Run a study: train every method with every seed, then report.

    Stop it at any moment (Ctrl-C, or worse) and run the same command again: finished runs are kept, a run under way
    goes on from its last checkpoint. Methods or seeds added to the file later cost only their own runs. Two of these
    commands on one folder share the work.
    """
    from .study import Study

    asked = Study.from_toml(study)
    _run(asked, out or Path("runs") / asked.name, workers, device, retry)


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe as TOML: options, and a [task] table.", show_default=False)],
    seed: Annotated[int, typer.Option(min=0, help="Decides the images drawn, the initial weights and the order.")] = 0,
    out: Out = None,
    device: Device = None,
) -> None:
    """Train one recipe, keep the network and its outputs, and report.

    A recipe is the [task] and [base] of a study without the table names in front:

        model = "cnn_small"
        loss = "focal(gamma=1.0)"
        epochs = 30
        [task]
        name = "digits"
    """
    from .study import expanded, single
    from .train import Mistakes, Recipe

    plain = _toml(recipe)
    try:
        options = expanded({k: v for k, v in plain.items() if k != "task"})
        made = Recipe.make(options, plain.get("task"), seed)
    except Mistakes as error:
        raise Mistakes([f"{recipe}: {line}" for line in error.lines]) from None
    _run(single(made, recipe.stem), out or Path("runs") / recipe.stem, 1, device, False)


def _run(study: Any, folder: Path, workers: int | None, device: str | None, retry: bool) -> None:
    from .store import Store
    from .study import Interrupted, best_device, core_count, run_study

    store, where = Store(folder), best_device(device)
    keys = [recipe.key for _, recipe in study.recipes()]
    if retry:
        for key in keys:
            if store.has(key) and not store.get(key).finished:
                store.remove(key)
    try:
        run_study(study, store, where, workers or (core_count() if where.type == "cpu" else 1), console)
    except Interrupted:
        done = sum(store.has(key) for key in keys)
        console.print(f"Stopped with {done} of {len(keys)} runs finished. The same command goes on from here:")
        console.print("  " + escape(" ".join(["equipoise", *sys.argv[1:]])))
        raise typer.Exit(130) from None
    _report(store)
    if not all(store.get(key).finished for key in keys):
        raise typer.Exit(1)


@app.command()
def report(folder: Folder) -> None:
    """Write report.html, report.md and results.csv again from the stored runs, and show the verdict."""
    from .store import Store

    _report(Store(folder))


def _report(store: Any) -> None:
    from .report import collect, print_verdict, write_report

    results = collect(store)
    page = write_report(store, results)
    print_verdict(results, console)
    console.print(f"\nReport: [bold]{escape(str(page))}[/]")


@app.command()
def status(folder: Folder) -> None:
    """Say which runs of a study are finished, under way, failed or still to do."""
    from .store import Store

    store = Store(folder)
    study = store.read_json("study.json")
    table = Table("method", "finished", "under way", "failed", "to do", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    totals = [0, 0, 0, 0]
    for method in study["methods"]:
        states = [_state(store, key) for key in method["keys"]]
        counts = [states.count(word) for word in ("finished", "under way", "failed", "to do")]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        table.add_row(escape(method["name"]), *map(str, counts))
    table.add_section()
    table.add_row("all", *map(str, totals), style="bold")
    console.print(escape(study["question"]))
    console.print(table)


def _state(store: Any, key: str) -> str:
    if store.has(key):
        return "finished" if store.get(key).finished else "failed"
    return "under way" if store.is_claimed(key) else "to do"


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
    console.print(escape(inspect.getdoc(entry.factory) or ""))
    if entry.companions:
        pairs = ", ".join(f"{dial} = {value!r}" for dial, value in entry.companions.items())
        console.print(f"\nIts companions, where you choose nothing else: {escape(pairs)}")
    if entry.arxiv:
        console.print(f"\narXiv:{entry.arxiv} ({entry.year})")


@app.command()
def presets() -> None:
    """List the presets: rows of the papers' tables by their names there, for `preset = "…"` in a study."""
    from .study import PRESETS

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
    table = Table("task", "here", "what it is", box=None, pad_edge=False)
    for entry in cards("task"):
        try:
            entry.factory()
            here = "yes"
        except EquipoiseError:
            here = "no"
        table.add_row(entry.name, here, escape(entry.summary))
    console.print(table)
    console.print(
        "\nData is looked for under EQUIPOISE_DATA, then in your cache folder, then where the system keeps it."
    )


@app.command()
def norms(
    model: Annotated[str, typer.Argument(help="A network, e.g. resnet32 or timm/resnet50.", show_default=False)],
    batch_size: Annotated[int, typer.Option(min=1, help="Examples that a norm sees at once.")] = 128,
    size: Annotated[int, typer.Option(min=1, help="Height and width of the images.")] = 32,
) -> None:
    """Say which norm suits a network and batch size, and whether decay of γ and β can act on it.

    Decay of a norm's γ and β changes what the network computes only where a path leads from that norm to the output
    that crosses no other norm.
    """
    import torch

    from .models import create_model
    from .norms import advise_norm, is_norm, unshielded_affine

    network = create_model(model, 10)
    count = sum(is_norm(module) for module in network.modules())
    found = unshielded_affine(network, torch.randn(2, 3, size, size))
    console.print(f"{escape(model)} has {count} norms; from {len(found)} a path to the output crosses no other norm:")
    console.print(f"  {escape(', '.join(found) or 'none')}\n")
    advice = advise_norm(batch_size, residual=len(found) > count / 4)
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


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise EquipoiseError(f"{path} is not there") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise EquipoiseError(f"{path} cannot be read: {error}") from None


def main() -> None:
    """Run the command line; a user's mistake is one paragraph, never a traceback."""
    try:
        app()
    except EquipoiseError as error:
        Console(stderr=True, highlight=False).print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
