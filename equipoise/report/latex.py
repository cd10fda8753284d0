"""A table as LaTeX with booktabs rules, to be put into a paper as it is."""

from __future__ import annotations

import re

from .paper import Grid
from .tables import Cell

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "−": "$-$", "–": "--", "×": r"$\times$", "Δ": r"$\Delta$", "≈": r"$\approx$", "\u00a0": "~",
}  # fmt: skip


def render_latex(grid: Grid) -> str:
    r"""The whole `table` environment; the document needs ``\usepackage{booktabs}``."""
    sides = "".join("r" if numeric else "l" for numeric in grid.numeric)
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\footnotesize",
        rf"\caption{{{escaped(grid.caption)}}}",
        rf"\label{{tab:{re.sub('[^A-Za-z0-9-]+', '-', grid.name).strip('-') or 'study'}}}",
        rf"\begin{{tabular}}{{@{{}}{sides}@{{}}}}",
        r"\toprule",
        " & ".join(escaped(title) for title in grid.header) + r" \\",
        r"\midrule",
        *(" & ".join(map(_cell, row)) + r" \\" for row in grid.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    r"""Text that LaTeX sets as it is: no command, comment or cell can be smuggled in.

    >>> print(escaped("a_b & 50 % {x} \\y ± 1"))
    a\_b \& 50 \% \{x\} \textbackslash{}y $\pm$ 1
    """
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split(" ")).replace("\n", " "))


def _cell(cell: Cell) -> str:
    main = rf"\textbf{{{escaped(cell.main)}}}" if cell.bold else escaped(cell.main)
    return f"{main} {escaped(cell.minor)}".strip()
