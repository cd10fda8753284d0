"""One word out of several: a wrong one is answered with the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from .errors import EquipoiseError
from .words import shown

_MOST_WORDS = 30  # that a message lists


def known(what: str, name: Any, words: Iterable[str]) -> str:
    """`name` if it is one of `words`; the error for anything else, of whatever type, suggests the nearest."""
    words = list(words)
    if not isinstance(name, str) or name not in words:
        raise EquipoiseError(f"no {what} is named {shown(name)}.{did_you_mean(name, words)}")
    return name


def did_you_mean(word: Any, words: Iterable[str]) -> str:
    """' Did you mean 'focal'?' where a near word exists, else the list of all words."""
    words = sorted(words)
    near = difflib.get_close_matches(word[:100], words, n=1) if isinstance(word, str) else []
    if near:
        return f" Did you mean {near[0]!r}?"
    rest = f" and {len(words) - _MOST_WORDS} more" if len(words) > _MOST_WORDS else ""
    return f" There is: {', '.join(words[:_MOST_WORDS])}{rest}."
