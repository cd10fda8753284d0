"""The application, its console, and the options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ..core.terminal import Terminal

app = typer.Typer(
    name="equipoise",
    help="Train image classifiers that treat their classes evenly, and find out, with evidence, what your data wants.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Terminal()

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results; default runs/NAME.")]
Workers = Annotated[
    int | None, typer.Option("--workers", "-j", min=1, max=1024, help="Worker processes; default one per core.")
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; default a GPU if there is one.")]
Engine = Annotated[str, typer.Option(help="local: this machine; ray: a cluster (docs/cluster.md).")]
Address = Annotated[
    str | None, typer.Option(help="With --engine ray: HOST:PORT of its head, or auto; default one on this machine.")
]
MaxRuns = Annotated[
    int | None,
    typer.Option("--max-runs", min=1, max=1_000_000, help="With --until-decided: trainings in all, at most."),
]
Peek = Annotated[bool, typer.Option("--peek", help="Look at test results before the end; recorded permanently.")]
Retry = Annotated[bool, typer.Option("--retry", help="Try failed runs again.")]
StudyFile = Annotated[Path, typer.Argument(help="A study as TOML; studies/ has examples.", show_default=False)]
Folder = Annotated[Path, typer.Argument(help="The folder that 'equipoise run' wrote.", show_default=False)]


def start_early(engine: str, address: str | None, device: str | None, workers: int | None) -> None:
    """Let the first worker import PyTorch while this process does; on a cluster, the nodes' processes, and a wrong
    address is told soon."""
    if engine == "ray":
        from ..study.run.cluster.connection import connected

        connected(address).warm_up(device, workers)
    elif engine == "local":
        from ..study.run.child import expect

        expect(device)


@contextmanager
def told_how_to_go_on(stopped: Callable[[], str]) -> Iterator[None]:
    """Ends the command in order after Ctrl-C: what was done is kept, and the same command goes on."""
    from ..study import Interrupted

    try:
        yield
    except Interrupted:
        console.print(f"{escape(stopped())} The same command goes on from here:")
        console.print("  " + escape(" ".join(["equipoise", *sys.argv[1:]])))
        raise typer.Exit(130) from None
