"""The command line, thin: it reads what was asked, calls the parts, and says how it went.

Exit codes: 0 all well; 1 some runs failed; 2 a mistake in what was asked, told in words; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import errno
import io
import sys
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.markup import escape
from rich.table import Table

from .. import __version__
from ..core import METHOD_KINDS, Card, EquipoiseError, card, cards, checks
from ..core.words import counted
from .terminal import Terminal

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
    int | None, typer.Option("--workers", "-j", min=1, max=1024, help="Worker processes; default one a core.")
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; default a GPU if there is one.")]
MaxRuns = Annotated[
    int | None,
    typer.Option("--max-runs", min=1, max=1_000_000, help="With --until-decided: trainings in all, at most."),
]
Peek = Annotated[bool, typer.Option("--peek", help="Look at test results before the end; marked for ever.")]
Retry = Annotated[bool, typer.Option("--retry", help="Try failed runs again.")]
Folder = Annotated[Path, typer.Argument(help="The folder that 'equipoise run' wrote.", show_default=False)]


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study as TOML; studies/ has examples.", show_default=False)],
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
) -> None:
    """Run a study: train every method with every seed, then report.

    Stop it at any moment (Ctrl-C, or worse) and run the same command again: finished runs are kept, a run under way
    goes on from its last checkpoint. Methods or seeds added to the file later cost only their own runs. Two of these
    commands on one folder share the work.

    With --until-decided seeds are added in planned rounds, on from those in the file. After each, methods that are
    surely worse get no more, and the study ends when what can be settled is. Rounds are judged on validation data, or
    with --peek on the test set. The chance of a false claim stays 5 % either way; docs/evidence.md says how.
    """
    from functools import partial

    from ..store import Store
    from ..study import Budget, Study, run_until_decided

    asked = Study.from_toml(study)
    if not until_decided and (max_runs or minutes is not None or peek):
        raise EquipoiseError("--max-runs, --minutes and --peek go with --until-decided")
    drive = partial(run_until_decided, budget=Budget(max_runs, minutes), peek=peek) if until_decided else None
    folder = out or Path("runs") / asked.name
    curves = study.with_name("sensitivity.json")
    if asked.tuned and curves.is_file():  # what tuning found goes into the report of what it chose
        Store(folder).create().write_text(curves.name, curves.read_text(errors="replace"))
    flags = {"compiled": compiled, "fast": fast, "tensorboard": tensorboard}
    choices = {name: True for name, chosen in flags.items() if chosen}
    _run(asked, folder, workers, device, retry, choices, profile, drive)


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
    """
    from ..study import expanded, name_of, near, read_toml, single
    from ..train import Mistakes, Recipe

    plain, name = near(read_toml(recipe), recipe), checks.file_name("the file's name", name_of(recipe))
    try:
        options = expanded({k: v for k, v in plain.items() if k != "task"})
        made = Recipe.make(options, _task_table(plain), seed)
    except Mistakes as error:
        raise Mistakes([f"{recipe}: {line}" for line in error.lines]) from None
    _run(single(made, name), out or Path("runs") / name, 1, device, retry)


def _task_table(plain: dict[str, Any]) -> dict[str, Any]:
    task = plain.get("task", {})
    if not isinstance(task, dict):
        raise EquipoiseError("task must be a table: write [task]")
    return task


def _run(
    study: Any,
    folder: Path,
    workers: int | None,
    device: str | None,
    retry: bool,
    choices: dict[str, bool] | None = None,
    profile: bool = False,
    drive: Any = None,
) -> None:
    """Run by `drive`, or all seeds at once; then report."""
    from ..store import Store
    from ..study import Clock, Interrupted, best_device, bound, core_count, decide, forecast, print_profile, run_study

    store, where, began = Store(folder), best_device(device), time.monotonic()
    count = workers or (core_count() if where.type == "cpu" else 1)
    if retry:
        for record in store.records():
            if not record.finished:
                store.remove(record.key)
    before = {record.key for record in store.records()} if profile else set()
    study = bound(study, store)
    if drive is None and (said := forecast(study, Clock(store, where, quick=True), count)):
        console.print(said)
    if choices:
        decide(store.create(), **choices)
    try:
        study = (drive or run_study)(study, store, where, count, console) or study
    except Interrupted:
        keys = [key for method in store.read_json("study.json")["methods"] for key in method["keys"]]
        done = sum(store.has(key) for key in keys)
        console.print(f"Stopped with {done} of {len(keys)} runs finished. The same command goes on from here:")
        console.print("  " + escape(" ".join(["equipoise", *sys.argv[1:]])))
        raise typer.Exit(130) from None
    seconds = time.monotonic() - began
    _report(store)
    if profile:
        print_profile(study, store, where, console, seconds, before)
    keys = [recipe.key for _, recipe in study.recipes()]
    if failed := sum(not store.get(key).finished for key in keys if store.has(key)):
        console.print(f"{counted(failed, 'run')} failed; the report says why. To try again, add --retry.")
        raise typer.Exit(1)


@app.command()
def plan(
    study: Annotated[Path, typer.Argument(help="A study as TOML; studies/ has examples.", show_default=False)],
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
        Clock,
        Study,
        best_device,
        bound,
        core_count,
        find_spread,
        new_rounds,
        print_looks,
        print_plan,
    )

    asked, where = bound(Study.from_toml(study)), best_device(device)
    store = Store(out or Path("runs") / asked.name)
    count = workers or (core_count() if where.type == "cpu" else 1)
    found, clock = find_spread(asked, store, spread, _store(pilot) if pilot else None), Clock(store, where)
    print_plan(asked, clock, count, found, console)
    print_looks(asked, new_rounds(asked, Budget(max_runs)), clock, count, found, console)


@app.command()
def tune(
    study: Annotated[Path, typer.Argument(help="A study as TOML; studies/ has examples.", show_default=False)],
    trials: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Trials for every method; default as in [tune].")
    ] = None,
    sampler: Annotated[str | None, typer.Option(help="grid, tpe or random; default as in [tune].")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default runs/NAME_tuning.")] = None,
    storage: Annotated[str | None, typer.Option(help="URL of Optuna's database; default a file in the folder.")] = None,
    workers: Workers = None,
    device: Device = None,
) -> None:
    """Tune a study: the same number of trials for every method, the baseline included, on validation data alone.

    Writes a study with the chosen recipes, tuned.toml, for 'equipoise run'. Stop it at any moment and give the same
    command again: no trial is repeated.
    """
    from dataclasses import replace

    from ..store import Store
    from ..study import Interrupted, Study, best_device, core_count, print_outcome, tune_study, write_outcome

    asked, where = Study.from_toml(study), best_device(device)
    tuning = replace(asked.tuning, trials=trials or asked.tuning.trials, sampler=sampler or asked.tuning.sampler)
    asked = replace(asked, tuning=tuning)
    store = Store(out or Path("runs") / f"{asked.name}_tuning")
    count = workers or (core_count() if where.type == "cpu" else 1)
    try:
        outcome = tune_study(asked, store, where, count, console, storage)
    except Interrupted:
        console.print("Stopped; finished runs are kept. The same command goes on from here:")
        console.print("  " + escape(" ".join(["equipoise", *sys.argv[1:]])))
        raise typer.Exit(130) from None
    print_outcome(outcome, console)
    write_outcome(outcome, store)
    console.print(
        f"\nTuned study: [bold]{escape(str(store.path / 'tuned.toml'))}[/], to be run with 'equipoise run'.",
        soft_wrap=True,
    )


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that 'equipoise run' wrote.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the table of several studies.")] = None,
    peek: Peek = False,
) -> None:
    """Write report.html, report.md and the tables again from the stored runs, and show the verdict.

    A study that has not ended is reported with --peek only, and says so ever after.

    Several folders, of studies that differ in their data alone, also give one table, methods × imbalance ratios; with
    --out it is written to by_ratio.md, by_ratio.tex and by_ratio.csv there.
    """
    from ..report import print_grid, table_by_ratio, write_by_ratio

    studies = [_report(_store(folder), peek) for folder in folders]
    if len(studies) > 1:
        console.print()
        print_grid(table_by_ratio(studies), console)
        if out:
            write_by_ratio(studies, out)


def _store(folder: Path) -> Any:
    """The results in a folder that is there."""
    from ..store import Store

    if not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise EquipoiseError(f"{folder} is {what}; give the folder that 'equipoise run' wrote, such as runs/demo")
    return Store(folder)


def _ended(store: Any, peek: bool) -> bool:
    """Whether a study has not ended and is to be looked at all the same; without `peek` that is refused."""
    from ..report import still_to_do

    left = still_to_do(store)
    if left and not peek:
        raise EquipoiseError(
            f"{store.path} has not ended: {left}. A report would open its test set. 'equipoise status' tells how it "
            "goes without; to look all the same, add --peek, and every later report will say so"
        )
    return left is not None


def _report(store: Any, peek: bool = False) -> Any:
    from ..report import collect, print_verdict, write_report

    _ended(store, peek)
    results = collect(store)
    page = write_report(store, results)
    print_verdict(results, console)
    console.print(f"\nReport: [bold]{escape(str(page))}[/]", soft_wrap=True)
    return results


@app.command()
def analyze(
    folder: Folder,
    transfer: Annotated[
        list[str] | None, typer.Option(help="A task on which a linear classifier of the features is tried.")
    ] = None,
    further: Annotated[
        list[str] | None, typer.Option(help="A folder of further test images, with one folder a class of the task.")
    ] = None,
    corruptions: Annotated[bool, typer.Option("--corruptions", help="Errors on corrupted test images too.")] = False,
    images: Annotated[int, typer.Option(min=10, help="Test images to look at, at most.")] = 5000,
    tsne: Annotated[bool, typer.Option("--tsne", help="Draw features by t-SNE rather than by PCA.")] = False,
    device: Device = None,
    peek: Peek = False,
) -> None:
    """Say what the methods of a study did to predictions and representations, and add it to the report.

    Agreement between runs, class separation and sparsity of each layer, similarity of layers (CKA), spectra and
    densities of the features; with --transfer, --further and --corruptions what they are worth elsewhere. Stop it at
    any moment and give the same command again: no run is measured twice. docs/analysis.md explains every number.
    """
    from ..report import write_report
    from ..study import Asked, Interrupted, analyze_study, best_device, print_analysis

    store, asked = _store(folder), Asked(images, tuple(transfer or ()), corruptions, tsne, tuple(further or ()))
    early = _ended(store, peek)
    try:
        analysis = analyze_study(store, asked, best_device(device), console, peek=early)
    except Interrupted:
        console.print("Stopped; what was measured is kept. The same command goes on from here:")
        console.print("  " + escape(" ".join(["equipoise", *sys.argv[1:]])))
        raise typer.Exit(130) from None
    page = write_report(store)
    print_analysis(analysis, console)
    console.print(f"\nReport: [bold]{escape(str(page))}[/]", soft_wrap=True)


@app.command()
def status(folder: Folder) -> None:
    """Say how a study is going: its runs by method, those under way with their epochs, the best so far, time left."""
    from ..report import print_status, status_of

    print_status(status_of(_store(folder)), console)


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
    table = Table("task", "here", "what it is", box=None, pad_edge=False)
    for entry in cards("task"):
        if any(p.default is p.empty for p in entry.parameters.values()):
            here = "yours"  # it is told where
        else:
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
    found = unshielded_affine(network, torch.randn(2, 3, size, size))
    console.print(
        f"{escape(model)} has {counted(count, 'norm')}; from {len(found)} a path to the output crosses no other norm:"
    )
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


# what a machine, rather than a mistake of ours, says to reading and writing, and the remedy
_SYSTEM = {
    errno.ENOENT: "it is not there",
    errno.EACCES: "you may not do that there; choose another folder, or ask for the right to",
    errno.EPERM: "you may not do that there; choose another folder, or ask for the right to",
    errno.EROFS: "the disk is read-only; choose another folder with --out",
    errno.ENOSPC: "the disk is full; make room and give the same command again",
    errno.EDQUOT: "your disk quota is used up; make room and give the same command again",
    errno.EISDIR: "it is a folder, and a file is needed",
    errno.ENOTDIR: "a file is where a folder is needed; choose another folder with --out",
    errno.EEXIST: "a file is in the way; choose another folder with --out",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "its links lead in a circle",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n) or lower --workers",
    errno.EIO: "the disk does not answer; see to it, or choose another folder with --out",
}


def _told(error: OSError | MemoryError | RuntimeError) -> str | None:
    """The sentence for an error of the machine; None where it may be a mistake of ours."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # in PyTorch's words
        return "the memory is not enough for this; ask for a smaller network, smaller batches or fewer workers"
    if not isinstance(error, OSError):
        return None
    ours = str(error.filename or "").startswith(str(Path(__file__).parent))
    if error.filename is None or ours or error.errno not in _SYSTEM:
        return None
    return f"{error.filename}: {_SYSTEM[error.errno]}"


def main() -> None:
    """Run the command line; a user's mistake is one paragraph, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name may be no text, a terminal no Unicode
    try:
        app()
    except EquipoiseError as error:
        _refuse(str(error))
    except (OSError, MemoryError, RuntimeError) as error:
        if (told := _told(error)) is None:
            raise
        _refuse(told)
    except KeyboardInterrupt:
        sys.exit(130)


def _refuse(sentence: str) -> NoReturn:
    from ..data.names import shown

    lines = "\n".join(map(shown, sentence.split("\n")))  # what the sentence repeats must not steer the terminal
    Terminal(stderr=True).print(f"[red]error:[/] {escape(lines)}", soft_wrap=True)
    sys.exit(2)
