"""How far long work is: a function that is told the stage, its steps done, and all of them."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Tells nobody."""
