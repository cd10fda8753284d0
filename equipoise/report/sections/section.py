"""`Section`: a part of the page that a study has only if something was measured for it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class Section:
    """`name` is its anchor, `sentence` says what the figures show.

    A figure is a drawing; one made twice is both drawings joined, wide and narrow, and then has a row of its own.
    With `legend` its series can be hidden and faded like those of the other figures.
    """

    name: str
    title: str
    sentence: str
    figures: tuple[Markup, ...]
    legend: bool = True
