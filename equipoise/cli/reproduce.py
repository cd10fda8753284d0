"""Published numbers and ours: `equipoise records`, `tables` and `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ..core.words import counted
from .app import Device, Out, Peek, Workers, app, console, told_how_to_go_on
from .results import store_in

RESULTS, PUBLISHED = Path("docs/results"), Path("studies/papers/published")

Published = Annotated[Path, typer.Option(help="Folder of published numbers.")]


@app.command()
def records(
    source: Annotated[
        Path, typer.Argument(help="The folder that 'equipoise run' wrote, or a file of records.", show_default=False)
    ],
    to: Annotated[Path, typer.Option(help="Folder for a file of records for each study.")] = RESULTS / "records",
    peek: Peek = False,
) -> None:
    """Keep what matters of a study's runs in a small file: recipes, seeds, data, metrics of the last epoch, machine.

    Runs that the file has already stay there. Weights and predictions are not kept. This opens the test set, so a study
    that has not ended is recorded with --peek only.
    """
    from ..front import Results
    from ..reproduction import keep_records, read_records, records_of

    if source.is_file():
        studies = list(read_records(source).values())
    else:
        results = Results(store_in(source), peek=peek)
        studies = [records_of(results.store.study(), results.store, peek=results.early)]
    for study, path in zip(studies, keep_records(studies, to), strict=True):
        console.print(f"{escape(study.name)}: {counted(len(study.runs), 'run')} in {escape(str(path))}")


@app.command()
def tables(
    results: Annotated[Path, typer.Argument(help="Folder with records/ and README.md.")] = RESULTS,
    published: Published = PUBLISHED,
) -> None:
    """Make the tables of docs/results from the records: every published number with ours and whether they agree.

    Run it in a checkout after 'equipoise records'. docs/results/README.md says what agreement means.
    """
    from ..reproduction import write_tables

    for path in write_tables(results, published):
        console.print(escape(str(path)))


@app.command()
def verify(
    name: Annotated[
        str, typer.Argument(help="STUDY/METHOD, recorded or published; docs/results/tables has them.", metavar="NAME")
    ],
    runs: Annotated[int, typer.Option(min=1, max=1000, help="New runs, with seeds that no record has.")] = 3,
    results: Annotated[Path, typer.Option(help="Folder with records/.")] = RESULTS,
    published: Published = PUBLISHED,
    studies: Annotated[Path, typer.Option(help="Folder with the studies of the papers.")] = Path("studies/full"),
    out: Out = None,
    workers: Workers = None,
    device: Device = None,
) -> None:
    """Train a recorded or published number again, and say whether it comes out inside its interval.

    For example 'equipoise verify demo/plain' in a checkout. Ends with 1 where it is outside. Runs are kept, by default
    in runs/verify_STUDY: the same command with more --runs adds to them.
    """
    from ..reproduction import Places, read_papers, read_records
    from ..reproduction import verify as verify_cell
    from ..store import Store
    from ..study import How, OnTerminal

    places = Places(read_records(results / "records"), read_papers(published), studies)
    store = Store(out or Path("runs") / f"verify_{name.partition('/')[0]}")
    with told_how_to_go_on(lambda: "Stopped; what was trained is kept."):
        verified = verify_cell(name, places, store, How.on(device, workers), OnTerminal(console), runs)
    for sentence in verified.sentences():
        console.print(escape(sentence))
    if not verified.holds:
        raise typer.Exit(1)
