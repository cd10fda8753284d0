"""Docstrings as a terminal can show them: its lines as long as the terminal is wide."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from itertools import groupby

_HEADING = re.compile(r"[A-Z][\w ]*:$")
_AS_IT_IS = re.compile(r" |[-*•] |\d+[.)] ")  # how formulas, and lists, begin


def reflowed(docstring: str, width: int) -> str:
    """Its prose in lines of at most so many characters; formulas and examples stay as they are.

    >>> print(reflowed("A long\\nline.\\n\\n    f(x)\\n\\nArgs:\\n    a: this\\n        or that.\\n    b: more.", 14))
    A long line.
    <BLANKLINE>
        f(x)
    <BLANKLINE>
    Args:
        a: this or
            that.
        b: more.
    """
    parts = groupby(docstring.splitlines(), key=lambda line: bool(line.strip()))
    return "\n\n".join("\n".join(_part(list(lines), width)) for written, lines in parts if written)


def _part(lines: list[str], width: int) -> Iterator[str]:
    """The lines of a paragraph, of a formula, or of a heading with what stands under it."""
    if len(lines) == 1 or not _HEADING.match(lines[0]):
        yield from lines if _AS_IT_IS.match(lines[0]) else [_fill(lines, width)]
        return
    yield lines[0]
    if lines[0] == "Example:":
        yield from lines[1:]
        return
    for item in _items(lines[1:]):
        yield _fill(item, width, "    ", "        ")


def _items(lines: list[str]) -> Iterator[list[str]]:
    """What belongs to one name: its line, and those below that are indented further."""
    item: list[str] = []
    for line in lines:
        if item and not line.startswith("     "):
            yield item
            item = []
        item.append(line)
    yield item


def _fill(lines: list[str], width: int, first: str = "", later: str = "") -> str:
    text = " ".join(line.strip() for line in lines)
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
