"""Names of files and folders, fit to be shown: whatever bytes they are made of."""

from __future__ import annotations

import unicodedata
from pathlib import Path

_JOINERS = "\u200c\u200d"  # part of words in several scripts, and of emoji
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control and format characters, undecodable bytes, line separators


def shown(name: str | Path) -> str:
    r"""`name` with every character escaped that a terminal obeys instead of showing, or that UTF-8 cannot hold.

    Those are line breaks, escape sequences, marks that turn the reading direction, and bytes that are no text.

    >>> shown("cat\x1b[31m"), shown("dog\udcff\u202e"), shown("نمونه")
    ('cat\\x1b[31m', 'dog\\udcff\\u202e', 'نمونه')
    """
    return "".join(_escaped(character) if _is_unseen(character) else character for character in str(name))


def listed(names: list[str], most: int = 20, separator: str = ", ") -> str:
    """The first names, fit to be shown, and the number of the rest."""
    more = f"{separator}and {len(names) - most} more" if len(names) > most else ""
    return separator.join(shown(name) for name in names[:most]) + more


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN and character not in _JOINERS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
