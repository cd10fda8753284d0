"""7 · The report: tables, figures and one self-contained page, made from a store alone."""

from ..core.extras import require

require("a report", "scipy", "jinja2", "rich")

from .board import Board, Refused, make_board
from .collect import collect
from .collected import Collected, Estimate, Method, Run
from .combination import Combination, combine_studies
from .render.board import print_board, render_board, write_board
from .render.combined import print_combined, render_combined, write_combined
from .render.combined_words import sentences
from .render.latex import render_latex
from .render.markdown import render_grid, render_markdown
from .render.page import render_page
from .render.paper import Grid, paper_table, table_by_ratio, table_csv
from .render.tables import class_table, ranked_table, results_csv
from .render.write import failure_notes, print_grid, print_verdict, terminal_table, write_by_ratio, write_report
from .seal import seal_notes, still_to_do
from .sections import SECTIONS, Section, sections_of
from .status import Status, print_status, status_of

__all__ = [
    "SECTIONS",
    "Board",
    "Collected",
    "Combination",
    "Estimate",
    "Grid",
    "Method",
    "Refused",
    "Run",
    "Section",
    "Status",
    "class_table",
    "collect",
    "combine_studies",
    "failure_notes",
    "make_board",
    "paper_table",
    "print_board",
    "print_combined",
    "print_grid",
    "print_status",
    "print_verdict",
    "ranked_table",
    "render_board",
    "render_combined",
    "render_grid",
    "render_latex",
    "render_markdown",
    "render_page",
    "results_csv",
    "seal_notes",
    "sections_of",
    "sentences",
    "status_of",
    "still_to_do",
    "table_by_ratio",
    "table_csv",
    "terminal_table",
    "write_board",
    "write_by_ratio",
    "write_combined",
    "write_report",
]
