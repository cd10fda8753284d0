"""`Section`: a part of the page under a heading of its own. The page knows no more of it than what is here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..render.tables import Cell


@dataclass(frozen=True)
class Sorted:
    """A table that a reader can sort: its first `texts` columns are words, and it comes sorted by column `by`."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str
    texts: int
    by: int = 0  # counted from 1; 0 is by none


@dataclass(frozen=True)
class Folded:
    """What is closed until a reader opens it: more figures, or a table."""

    summary: str
    figures: tuple[Markup, ...] = ()
    table: Sorted | None = None


@dataclass(frozen=True)
class Section:
    """`name` is its anchor, `sentence` says what the figures show.

    A figure is a drawing; one made twice is both drawings joined, wide and narrow, and then has a row of its own.
    `titled` are figures of a row's width, each under a title. With `legend` the series can be hidden and faded.
    """

    name: str
    title: str
    sentence: str
    figures: tuple[Markup, ...] = ()
    legend: bool = True
    titled: tuple[tuple[str, Markup], ...] = ()
    folded: Folded | None = None
    further: bool = False  # of more than the runs themselves; report.md names it as what the page also has
    menu: str = ""  # what the page's menu calls it, where that is not the title
