"""How values and numbers are said in a sentence."""

from __future__ import annotations

import re
from typing import Any

LONGEST = 80  # characters of a value that a message repeats


def shown(value: Any, longest: int = LONGEST) -> str:
    """`value` as a message repeats it: its repr, cut where it is long.

    >>> shown("focal" * 100, 12)
    "'focalfocalf…"
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python prints no number of more than 4,300 digits
        text = f"a {type(value).__name__} too long to print"
    return cut(text, longest)


def cut(text: str, longest: int = LONGEST) -> str:
    """`text`, or its beginning where it is long."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def is_readable(text: str) -> bool:
    """Whether a terminal shows `text` and obeys none of it.

    Marks that join letters are part of words, and bytes that are no text are part of some files' names.
    """
    return re.sub("[\u200c\u200d\udc80-\udcff]", "", text).isprintable()


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun, in the singular where it is 1.

    >>> counted(1, "method"), counted(2, "method"), counted(0, "class", "classes"), counted(12000, "run")
    ('1 method', '2 methods', '0 classes', '12,000 runs')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
