"""A study in a notebook: one bar below the cell, and what there is to say above it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib import import_module

from ...core.progress import Progress
from ...store import Store
from .listener import Listener, Tone, Watch, news_of
from .pace import Pace
from .workers import Event

SECONDS = 0.2  # between two pictures of the bar


class InNotebook(Listener):
    """Needs IPython, which every notebook has."""

    def say(self, text: str, tone: Tone = "plain") -> None:
        print(text)

    @contextmanager
    def runs(self, names: Mapping[str, str], total: int, done: int) -> Iterator[Watch]:
        with _bar() as show:
            yield _Bar(self, names, total, done, show)

    @contextmanager
    def steps(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        count = 0

        def advance(name: str) -> None:
            nonlocal count
            count += 1
            show(bar_html(count, total, f"{what}: {name}"))

        with _bar() as show:
            yield advance

    @contextmanager
    def stages(self) -> Iterator[Progress]:
        with _bar() as show:
            yield lambda stage, done, total: show(bar_html(done, total, stage, unit=""))


class _Bar(Watch):
    def __init__(
        self, listener: Listener, names: Mapping[str, str], total: int, done: int, show: Callable[[str], None]
    ) -> None:
        self.listener, self.names, self.show = listener, names, show
        self.pace, self.began, self.drawn = Pace(total, done), time.monotonic(), 0.0

    def event(self, event: Event, store: Store) -> None:
        now = time.monotonic()
        self.pace.event(event, now)
        for text, tone in news_of(event, self.names, store):
            self.listener.say(text, tone)
        if event.what == "done" or now - self.drawn > SECONDS:
            self.drawn = now
            self.show(bar_html(self.pace.done, self.pace.total, self.pace.words(now - self.began, now)))

    def count(self, done: int) -> None:
        self.pace.done = done


def bar_html(done: int, total: int, note: str, unit: str = " runs") -> str:
    """
    >>> bar_html(1, 4, "0:10 taken")
    '<progress value="1" max="4"></progress> 1/4 runs · 0:10 taken'
    """
    return f'<progress value="{done}" max="{total}"></progress> {done}/{total}{unit} · {escape(note)}'


@contextmanager
def _bar() -> Iterator[Callable[[str], None]]:
    """A place below the cell; it is cleared at the end."""
    shown = import_module("IPython.display")
    handle = shown.display(shown.HTML(""), display_id=True)
    try:
        yield lambda html: handle.update(shown.HTML(html))
    finally:
        handle.update(shown.HTML(""))


def in_notebook() -> bool:
    """Whether this is a notebook's kernel, which can show HTML."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None
