"""Names come from files and folders, and may hold anything: one function for each place where text could be obeyed.

HTML has Jinja and MarkupSafe for it, the markup of terminals `rich.markup.escape`; both get what is `visible`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # Unicode: control, format, half a character, ends of lines and paragraphs
_SHOWN = frozenset("\n\t\u200c\u200d")  # ends of our own lines; joiners are part of words and of emoji
_FORMULA = tuple("=+-@\t\r")

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "−": "$-$", "–": "--", "×": r"$\times$", "Δ": r"$\Delta$", "≈": r"$\approx$", "\u00a0": "~",
}  # fmt: skip


def visible(text: str) -> str:
    """`text` with all that a terminal or an editor obeys, rather than shows, written as an escape.

    >>> print(visible("a\\x1b[31mb\\u202ec"), visible("ümlaut – 漢字"), visible("\\udcff"))
    a\\x1b[31mb\\u202ec ümlaut – 漢字 \\udcff
    """
    if text.isprintable():
        return text
    return "".join(c if c in _SHOWN or unicodedata.category(c) not in _OBEYED else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def csv_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; what is no text stays as it is.

    >>> csv_cell("=1+1"), csv_cell("focal"), csv_cell(-0.5)
    ("'=1+1", 'focal', -0.5)
    """
    if not isinstance(value, str):
        return value
    return visible(f"'{value}" if value.startswith(_FORMULA) else value)


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
