"""A table as LaTeX with booktabs rules, to be put into a paper as it is."""

from __future__ import annotations

import re

from ...core.escaping import latex
from .paper import Grid
from .tables import Cell


def render_latex(grid: Grid) -> str:
    r"""The whole `table` environment; the document needs ``\usepackage{booktabs}``."""
    sides = "".join("r" if numeric else "l" for numeric in grid.numeric)
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\footnotesize",
        rf"\caption{{{latex(grid.caption)}}}",
        rf"\label{{tab:{re.sub('[^A-Za-z0-9-]+', '-', grid.name).strip('-') or 'study'}}}",
        rf"\begin{{tabular}}{{@{{}}{sides}@{{}}}}",
        r"\toprule",
        " & ".join(latex(title) for title in grid.header) + r" \\",
        r"\midrule",
        *(" & ".join(map(_cell, row)) + r" \\" for row in grid.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(cell: Cell) -> str:
    main = rf"\textbf{{{latex(cell.main)}}}" if cell.bold else latex(cell.main)
    return f"{main} {latex(cell.minor)}".strip()
