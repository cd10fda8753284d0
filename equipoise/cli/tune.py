"""`equipoise tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from .app import Address, Device, Engine, StudyFile, Workers, app, console, start_early, told_how_to_go_on


@app.command()
def tune(
    study: StudyFile,
    trials: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Trials for every method; default as in [tune].")
    ] = None,
    sampler: Annotated[str | None, typer.Option(help="grid, tpe or random; default as in [tune].")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default runs/NAME_tuning.")] = None,
    storage: Annotated[str | None, typer.Option(help="URL of Optuna's database; default a file in the folder.")] = None,
    workers: Workers = None,
    device: Device = None,
    engine: Engine = "local",
    address: Address = None,
) -> None:
    """Tune a study: the same number of trials for every method, the baseline included, on validation data alone.

    Writes a study with the chosen recipes, tuned.toml, for 'equipoise run'. Stop it at any moment and give the same
    command again: no trial is repeated.
    """
    start_early(engine, address, device, workers)
    from dataclasses import replace

    from ..store import Store
    from ..study import How, OnTerminal, Study, print_outcome, tune_study, write_outcome

    asked = Study.from_toml(study)
    tuning = replace(asked.tuning, trials=trials or asked.tuning.trials, sampler=sampler or asked.tuning.sampler)
    asked, how = replace(asked, tuning=tuning), How.on(device, workers, engine=engine, address=address)
    store = Store(out or Path("runs") / f"{asked.name}_tuning")
    with told_how_to_go_on(lambda: "Stopped; finished runs are kept."):
        outcome = tune_study(asked, store, how, OnTerminal(console), storage)
    print_outcome(outcome, console)
    write_outcome(outcome, store)
    console.print(
        f"\nTuned study: [bold]{escape(str(store.path / 'tuned.toml'))}[/], to be run with 'equipoise run'.",
        soft_wrap=True,
    )
