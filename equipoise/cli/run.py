"""Doing runs: `equipoise run`, `train` and `plan`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core import EquipoiseError
from ..core.words import counted
from .app import (
    Address,
    Device,
    Engine,
    MaxRuns,
    Out,
    Peek,
    Retry,
    StudyFile,
    Workers,
    app,
    console,
    start_early,
    told_how_to_go_on,
)
from .results import show_report, store_in


@app.command()
def run(
    study: StudyFile,
    out: Out = None,
    workers: Workers = None,
    device: Device = None,
    retry: Retry = False,
    compiled: Annotated[bool, typer.Option("--compile", help="Fuse the networks first; for long studies.")] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="On a GPU: the fastest kernels, which round differently each time.")
    ] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Say afterwards where the time went.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write event files for TensorBoard.")] = False,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="Add seeds in rounds until the tiers are settled.")
    ] = False,
    max_runs: MaxRuns = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="With --until-decided: begin no round that would end later.")
    ] = None,
    peek: Peek = False,
    pilot: Annotated[
        bool, typer.Option("--pilot", help="Check that training is long enough, even where that costs much.")
    ] = False,
    accept_short_training: Annotated[
        bool, typer.Option("--accept-short-training", help="Make claims though training has not converged.")
    ] = False,
    engine: Engine = "local",
    address: Address = None,
) -> None:
    """Run a study: train every method with every seed, then report.

    Stop it at any moment (Ctrl-C, or even kill -9) and run the same command again: finished runs are kept, and a run
    under way continues from its last checkpoint. Methods or seeds added to the file later cost only their own runs.
    Two of these commands on one folder share the work.

    With --until-decided seeds are added in planned rounds, starting with those in the file. After each round, methods
    that are surely worse get no more seeds, and the study ends when all that can be settled is settled. Rounds are
    judged on validation data, or with --peek on the test set. The chance of a false claim stays 5 % either way;
    docs/evidence.md says how.

    At the end the baseline and the best method are trained once more for twice as long, where that costs no more than
    a fifth of the study, or with --pilot. If that makes clearly fewer mistakes, training was too short, and no method
    is called better unless you add --accept-short-training.
    """
    start_early(engine, address, device, workers)
    from ..store import Store
    from ..study import Budget, Study

    asked = Study.from_toml(study)
    if accept_short_training:
        asked = replace(asked, accept_short_training=True)
    if not until_decided and (max_runs or minutes is not None or peek):
        raise EquipoiseError("--max-runs, --minutes and --peek go with --until-decided")
    folder = out or Path("runs") / asked.name
    curves = study.with_name("sensitivity.json")
    if asked.tuned and curves.is_file():  # what tuning found goes into the report of what it chose
        Store(folder).create().write_text(curves.name, curves.read_text(errors="replace"))
    _run(
        asked,
        folder,
        profile,
        device=device,
        workers=workers,
        retry=retry,
        until_decided=until_decided and Budget(max_runs, minutes),
        peek=peek,
        compiled=compiled,
        fast=fast,
        tensorboard=tensorboard,
        pilot=pilot,
        engine=engine,
        address=address,
    )


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe as TOML: options, and a [task] table.", show_default=False)],
    seed: Annotated[int, typer.Option(min=0, help="Decides the images drawn, the initial weights and the order.")] = 0,
    out: Out = None,
    device: Device = None,
    retry: Retry = False,
) -> None:
    """Train one recipe, keep the network and its outputs, and report.

    A recipe is the [task] and [base] of a study without the table names in front:

        model = "cnn_small"
        loss = "focal(gamma=1.0)"
        epochs = 30
        [task]
        name = "digits"

    On several GPUs or machines torchrun starts it, one process for each GPU, and batch_size is that of all together:

        torchrun --nproc-per-node=4 --max-restarts=3 -m equipoise train recipe.toml

    The same command, with the same or another number of processes, continues from the last checkpoint;
    docs/distributed.md says more.
    """
    from ..core import checks
    from ..study import expand_preset, name_of, near, read_toml, started_by_torchrun, study_of_one
    from ..train import Mistakes, Recipe

    plain, name = near(read_toml(recipe), recipe), checks.file_name("the file's name", name_of(recipe))
    try:
        options = expand_preset({k: v for k, v in plain.items() if k != "task"})
        made = Recipe.make(options, _task_table(plain), seed)
    except Mistakes as error:
        raise Mistakes([f"{recipe}: {line}" for line in error.lines]) from None
    study, folder = study_of_one(made, name), out or Path("runs") / name
    if started_by_torchrun():
        _run_together(study, folder, device, retry)
    else:
        _run(study, folder, workers=1, device=device, retry=retry)


def _task_table(plain: dict[str, Any]) -> dict[str, Any]:
    task = plain.get("task", {})
    if not isinstance(task, dict):
        raise EquipoiseError("task must be a table: write [task]")
    return task


def _run(study: Any, folder: Path, profile: bool = False, **options: Any) -> None:
    """Run a study, show its report, and end with 1 where runs failed."""
    from ..front import run as run_study
    from ..store import Store
    from ..study import OnTerminal, best_device, print_profile

    if profile and options.get("engine") == "ray":
        raise EquipoiseError("--profile measures this machine, and --engine ray trains on others: leave one out")
    store, began = Store(folder), time.monotonic()
    before = {record.key for record in store.records()} if profile else set()
    with told_how_to_go_on(lambda: _how_far(store)):
        results = run_study(study, folder, listener=OnTerminal(console), **options)
    seconds = time.monotonic() - began
    show_report(results)
    if profile:
        print_profile(store, best_device(options["device"]), console, seconds, before)
    _end_with_failures(results)


def _run_together(study: Any, folder: Path, device: str | None, retry: bool) -> None:
    """The same on the processes that torchrun started; the first of them reports."""
    from ..front import Results
    from ..store import Store
    from ..study import Listener, OnTerminal, processes, run_together

    store = Store(folder)
    with processes(device) as how:
        leads = how.team.leads
        if retry and leads:
            store.forget_failures()
        run_together(study, store, how, OnTerminal(console) if leads else Listener())
    if leads:
        results = Results(store)
        show_report(results)
        _end_with_failures(results)


def _end_with_failures(results: Any) -> None:
    """End with 1 where runs failed."""
    if failed := len(results.collected.failed):
        console.print(f"{counted(failed, 'run')} failed; the report says why. To try again, add --retry.")
        raise typer.Exit(1)


def _how_far(store: Any) -> str:
    keys = store.study().keys
    done = sum(store.has(key) for key in keys)
    return f"Stopped with {done} of {len(keys)} runs finished."


@app.command()
def plan(
    study: StudyFile,
    out: Out = None,
    workers: Workers = None,
    device: Device = None,
    spread: Annotated[
        float | None, typer.Option(min=0, max=1e6, help="How much differences vary between seeds (sd), in points.")
    ] = None,
    pilot: Annotated[Path | None, typer.Option(help="The folder of a small study to take this from.")] = None,
    max_runs: MaxRuns = None,
) -> None:
    """Say what a study will cost and what differences it can show, before it runs.

    Times come from the runs of its folder, or from a few steps measured here. The test set is not looked at.
    """
    from ..store import Store
    from ..study import (
        Budget,
        How,
        RunTimes,
        Study,
        bound,
        find_spread,
        new_rounds,
        print_looks,
        print_plan,
    )

    asked, how = bound(Study.from_toml(study)), How.on(device, workers)
    store = Store(out or Path("runs") / asked.name)
    spread_seen = find_spread(asked, store, spread, store_in(pilot) if pilot else None)
    times = RunTimes(store, how.device)
    print_plan(asked, times, how.workers, spread_seen, console)
    print_looks(asked, new_rounds(asked, Budget(max_runs)), times, how.workers, spread_seen, console)
