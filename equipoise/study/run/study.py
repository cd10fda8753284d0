"""Runs a study to its end, or to Ctrl-C, and shows how it goes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from ...core import EquipoiseError
from ...core.words import counted
from ...store import Store
from ...store.lock import at_work
from ...train import Recipe
from ..binding import bind
from ..study import Study
from .child import check_guard
from .hardware import decide, settings
from .job import Job, jobs_of, task_of
from .pace import Pace
from .tensorboard import TensorBoard
from .workers import Event, Workers

ROUNDS = "sequential.json"  # the plan and the findings of a study that adds seeds in rounds


class Interrupted(Exception):
    """The user pressed Ctrl-C; all that was done is kept."""


def run_study(study: Study, store: Store, device: torch.device, workers: int, console: Console) -> Study:
    """Do every run that the store lacks; gives the study bound to its data. Raises `Interrupted` after a clean stop."""
    check_guard()
    if (store.path / ROUNDS).exists() or _adds_seeds_in_rounds(store):
        raise EquipoiseError(
            f"{store.path} holds a study that adds seeds in rounds, and its claims count on that: go on with "
            "--until-decided, or choose another folder with --out"
        )
    study = bind(study, store, console)
    with at_work(store.create(), study.to_dict()):
        if study.progress:
            decide(store, progress=True)
        if not do_runs(study.recipes(), store, device, workers, console):
            runs = counted(len(study.seeds) * len(study.methods), "run")
            console.print(f"All of the study's {runs} are in {escape(str(store.path))} already.")
    return study


def _adds_seeds_in_rounds(store: Store) -> bool:
    """Whether the study there says so, even if its plan is gone."""
    try:
        return store.study().rounds
    except EquipoiseError:  # there is none yet, or a damaged one, which is written anew
        return False


def do_runs(
    recipes: Iterable[tuple[str, Recipe]], store: Store, device: torch.device, workers: int, console: Console
) -> bool:
    """Do those of the named `recipes` that the store lacks, and show how it goes; False if it has them all."""
    named = list(recipes)
    names = {recipe.key: f"{name} · seed {recipe.seed}" for name, recipe in named}
    jobs = jobs_of(recipe for _, recipe in named)
    set_aside_damaged(store, console, [recipe.key for job in jobs for recipe in job.recipes])
    missing = [job for job in jobs if not job.finished_in(store)]
    if not missing:
        return False
    for recipe in {job.training.task: job.training for job in missing}.values():
        task_of(recipe, store, torch.device("cpu"))  # all broken images are told here, before anything is trained
    pool = Workers(missing, store, device, workers)
    board = TensorBoard(store.path / "tensorboard") if settings(store).get("tensorboard") else None
    with _stop_on_interrupt(pool, console), Display(console, names, len(jobs), len(jobs) - len(missing)) as display:
        for event in pool.events():
            display.show(event, store)
            if board and event.what == "epoch":
                name, seed = next((n, r.seed) for n, r in named if r in event.job.recipes)
                board.epoch(name, seed, event.epoch, event.latest or {})
            if event.what == "fatal":
                pool.stop()
                raise EquipoiseError(event.error or "a worker failed")
    if pool.stopping:
        raise Interrupted
    return True


def set_aside_damaged(store: Store, console: Console, keys: Iterable[str] | None = None) -> None:
    """Move what is damaged of these runs, or of all, out of the way and say so; it is done again."""
    for found in store.set_aside_damaged(keys):
        words = f"{found.path} is damaged ({found.problem}): its run is now in {store.path / 'damaged'} and done again."
        console.print(Text(words, style="yellow"), soft_wrap=True)


@contextmanager
def _stop_on_interrupt(pool: Workers, console: Console) -> Iterator[None]:
    """The first Ctrl-C asks for a clean stop, the second one ends at once."""

    def handle(number: int, frame: Any) -> None:
        if pool.stopping:
            raise KeyboardInterrupt
        console.print("\nStopping: each run under way writes its checkpoint at the end of its epoch …")
        pool.stop()

    with on_ctrl_c(handle):
        yield


@contextmanager
def on_ctrl_c(handle: Any = signal.default_int_handler) -> Iterator[None]:
    """Within, Ctrl-C calls `handle`; by default it raises KeyboardInterrupt, which the command line otherwise does not.

    Only the main thread of a process can have it so; elsewhere it stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _News(ProgressColumn):
    """What a run says of itself; of the whole study, the time taken and left."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self.pace = pace

    def render(self, task: Task) -> Text:
        if task.fields["note"]:
            return Text(task.fields["note"], style="dim")
        left = self.pace.left(time.monotonic())
        return Text(f"{_minutes(task.elapsed or 0)} taken, {'?' if left is None else _minutes(left)} left", style="dim")


def _minutes(seconds: float) -> str:
    """
    >>> _minutes(80), _minutes(3 * 3600 + 61)
    ('1:20', '3:01:01')
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


class Display:
    """A bar for the study and one for each run under way; where there is no terminal, a line for each finished run."""

    def __init__(self, console: Console, names: dict[str, str], total: int, done: int) -> None:
        self.console, self.names, self.pace = console, names, Pace(total, done)
        self.progress = Progress(
            TextColumn("{task.description:<30.30}", markup=False),
            BarColumn(bar_width=12),
            TextColumn("{task.completed}/{task.total} {task.fields[unit]}"),
            _News(self.pace),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self.whole = self.progress.add_task("whole study", total=total, completed=done, unit="runs", note="")
        self.bars: dict[int, TaskID] = {}

    def __enter__(self) -> Display:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def show(self, event: Event, store: Store) -> None:
        name = self.name(event.job)
        self._keep_time(event)
        if event.what == "epoch":
            self._bar(event, name)
        elif event.what in ("done", "had"):
            self.progress.advance(self.whole)
        if event.what == "again":
            self.console.print(f"[yellow]again[/] {escape(f'{name}: {event.error}')}", highlight=False, soft_wrap=True)
        if event.what == "done":
            self._tell_failures(event.job, store)
            if not self.console.is_terminal and store.get(self._named(event.job).key).finished:
                self.console.print(f"finished {escape(name)}")

    def _keep_time(self, event: Event) -> None:
        key, now = event.job.training.key, time.monotonic()
        if event.what == "begun":
            self.pace.begun(key, now)
        elif event.what == "epoch":
            self.pace.epoch(key, event.epoch, event.job.training.plan.epochs, now)
        elif event.what in ("done", "had"):
            self.pace.ended(key, now)
        else:
            self.pace.stopped(key)

    def name(self, job: Job) -> str:
        """The method's name; a training that only post-hoc methods use goes by the first of them."""
        return self.names[self._named(job).key]

    def _named(self, job: Job) -> Recipe:
        return next(recipe for recipe in job.recipes if recipe.key in self.names)

    def _bar(self, event: Event, name: str) -> None:
        if event.place not in self.bars:
            self.bars[event.place] = self.progress.add_task("", total=1, unit="epochs", note="")
        latest = event.latest or {}
        note = f"loss {latest['train_loss']:.2f}"
        if "valid_balanced_accuracy" in latest:
            note += f", valid {100 * latest['valid_balanced_accuracy']:.0f} %"
        self.progress.update(
            self.bars[event.place],
            description=f"  {name}",
            total=event.job.training.plan.epochs,
            completed=event.epoch,
            note=note,
        )

    def _tell_failures(self, job: Job, store: Store) -> None:
        for recipe in job.recipes:
            record = store.get(recipe.key)
            for note in record.notes:
                self.console.print(Text(f"{self.names.get(recipe.key, 'a training')}: {note}"))
            if not record.finished:
                last_line = (record.error or "no reason was recorded").strip().splitlines()[-1]
                told = f"{self.names.get(recipe.key, 'a training')}: {last_line}"
                self.console.print(f"[red]failed[/] {escape(told)}", highlight=False, soft_wrap=True)


def single(recipe: Recipe, name: str) -> Study:
    """A study of one method, so that one recipe can be run, stored and reported like any study."""
    return Study(name, f"What does {name} reach?", name, "balanced_accuracy", (recipe.seed,), {name: recipe})
