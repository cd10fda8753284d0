"""A study on a terminal: a bar for the whole and one for each run under way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ...core.progress import Progress as StageProgress
from ...core.terminal import Terminal
from ...store import Store
from .listener import Listener, Tone, Watch, name_of, news_of, score_note
from .pace import Pace
from .runs import on_ctrl_c
from .workers import Event

STYLES: dict[Tone, str] = {"plain": "", "faint": "dim", "warning": "yellow", "failure": "red"}
COLOURED = ("again", "failed")  # the first words of sentences of which no more is coloured


class OnTerminal(Listener):
    """Shows bars where there is a terminal; where there is none, as in a log file, a line for each finished run."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Terminal()

    def say(self, text: str, tone: Tone = "plain") -> None:
        first, space, rest = text.partition(" ")
        coloured = first if first in COLOURED else text
        words = Text.assemble((coloured, STYLES[tone]), space + rest if first in COLOURED else "")
        self.console.print(words, soft_wrap=True)

    @contextmanager
    def runs(self, names: Mapping[str, str], total: int, done: int) -> Iterator[Watch]:
        bars = _Bars(self, names, total, done)
        with bars.progress:
            yield bars

    @contextmanager
    def steps(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        columns = (*_columns(20), TimeRemainingColumn())
        with _OnScreen(self.console, *columns) as bar:
            task = bar.add_task(what, total=total, unit="runs")
            yield lambda name: bar.update(task, advance=1, description=name)

    @contextmanager
    def stages(self) -> Iterator[StageProgress]:
        columns = (*_columns(24), TimeRemainingColumn())
        # after Ctrl-C the bar gives the terminal its cursor back
        with on_ctrl_c(), _OnScreen(self.console, *columns) as bar:
            tasks: dict[str, TaskID] = {}

            def show(stage: str, done: int, total: int) -> None:
                if stage not in tasks:
                    tasks[stage] = bar.add_task(stage, unit="")
                bar.update(tasks[stage], completed=done, total=total)

            yield show


def _columns(width: int) -> tuple[ProgressColumn, ...]:
    return (
        TextColumn("{task.description:<30.30}", markup=False),
        BarColumn(bar_width=width),
        TextColumn("{task.completed}/{task.total} {task.fields[unit]}"),
    )


class _OnScreen(Progress):
    """Bars that vanish at their end. Where there is no terminal nothing is drawn, not even an empty line at the end, as
    Rich before 14.3 does."""

    def __init__(self, console: Console, *columns: ProgressColumn) -> None:
        super().__init__(*columns, console=console, disable=not console.is_terminal, transient=True)

    def stop(self) -> None:
        if not self.disable:
            super().stop()


class _Bars(Watch):
    def __init__(self, listener: OnTerminal, names: Mapping[str, str], total: int, done: int) -> None:
        self.listener, self.names, self.pace = listener, names, Pace(total, done)
        self.on_screen = listener.console.is_terminal
        self.progress = _OnScreen(listener.console, *_columns(12), _News(self.pace))
        self.whole = self.progress.add_task("whole study", total=total, completed=done, unit="runs", note="")
        self.bars: dict[int, TaskID] = {}

    def event(self, event: Event, store: Store) -> None:
        self.pace.event(event, time.monotonic())
        if event.what == "epoch":
            self._show_epoch(event)
        elif event.what in ("done", "had"):
            self.progress.advance(self.whole)
        for text, tone in news_of(event, self.names, store):
            self.listener.say(text, tone)
        if event.what == "done" and not self.on_screen:
            named = next(recipe for recipe in event.job.recipes if recipe.key in self.names)
            if store.get(named.key).finished:
                self.listener.say(f"finished {self.names[named.key]}")

    def count(self, done: int) -> None:
        self.progress.update(self.whole, completed=done)

    def _show_epoch(self, event: Event) -> None:
        if event.place not in self.bars:
            self.bars[event.place] = self.progress.add_task("", total=1, unit="epochs", note="")
        self.progress.update(
            self.bars[event.place],
            description=f"  {name_of(event, self.names)}",
            total=event.job.training.plan.epochs,
            completed=event.epoch,
            note=score_note(event),
        )


class _News(ProgressColumn):
    """What a run says of itself; of the whole study, the time taken and left."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self.pace = pace

    def render(self, task: Task) -> Text:
        if task.fields["note"]:
            return Text(task.fields["note"], style="dim")
        return Text(self.pace.words(task.elapsed or 0.0, time.monotonic()), style="dim")
