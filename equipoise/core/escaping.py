"""Names come from files and folders, and may hold anything: one function for each place where text could be obeyed.

HTML has Jinja and MarkupSafe for it, the markup of terminals `rich.markup.escape`; both get what is `visible`.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # Unicode: control, format, half a character, ends of lines and paragraphs
_JOINERS = "\u200c\u200d"  # part of words in several scripts, and of emoji
_FORMULA = tuple("=+-@\t\r")

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "−": "$-$", "–": "--", "×": r"$\times$", "Δ": r"$\Delta$", "≈": r"$\approx$", "\u00a0": "~",
}  # fmt: skip


def visible(text: str | Path, *, lines: bool = False) -> str:
    r"""A name with all that a terminal or an editor obeys, rather than shows, written as an escape.

    Bytes that are no text are escaped too. Of a text that is more than a name, ends of `lines` and tabs may stay.

    >>> visible("cat\x1b[31m\n"), visible("dog\udcff\u202e"), visible("ümlaut – 漢字"), visible("a\n\tb\r", lines=True)
    ('cat\\x1b[31m\\n', 'dog\\udcff\\u202e', 'ümlaut – 漢字', 'a\n\tb\\r')
    """
    text, kept = str(text), _JOINERS + "\n\t" * lines
    if text.isprintable():
        return text
    return "".join(c if c in kept or unicodedata.category(c) not in _OBEYED else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def csv_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; what is no text stays as it is.

    >>> csv_cell("=1+1"), csv_cell("focal"), csv_cell(-0.5)
    ("'=1+1", 'focal', -0.5)
    """
    if not isinstance(value, str):
        return value
    return visible(f"'{value}" if value.startswith(_FORMULA) else value, lines=True)


def markdown(text: str) -> str:
    """Text that Markdown shows as it is: no tag, link, code or table cell can be smuggled in.

    >>> print(markdown("a|b <script>[x](y)` https://x.y www.x.y _z_ a_b"))
    a\\|b &lt;script&gt;\\[x\\](y)\\` https\\://x.y www\\.x.y \\_z\\_ a_b
    """
    text = visible(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|#!~@])", r"\\\1", text)
    text = re.sub(r":(?=//)|(?<=\bwww)\.|(?<=mailto):", r"\\\g<0>", text, flags=re.IGNORECASE)
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)


def latex(text: str) -> str:
    r"""Text that LaTeX sets as it is: no command, comment or cell can be smuggled in.

    >>> print(latex("a_b & 50 % {x} \\y ± 1"))
    a\_b \& 50 \% \{x\} \textbackslash{}y $\pm$ 1
    """
    return "".join(_LATEX.get(character, character) for character in visible(text.replace("\n", " ")))
