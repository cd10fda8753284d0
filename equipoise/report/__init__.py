"""7 · The report: tables, figures and one self-contained page, made from a store alone."""

from .collect import Estimate, Method, Results, Run, collect
from .figures import class_plot, curve_plot, interval_plot
from .markdown import render_markdown
from .page import render_page
from .tables import class_table, ranked_table, results_csv
from .write import print_verdict, terminal_table, write_report

__all__ = [
    "Estimate",
    "Method",
    "Results",
    "Run",
    "class_plot",
    "class_table",
    "collect",
    "curve_plot",
    "interval_plot",
    "print_verdict",
    "ranked_table",
    "render_markdown",
    "render_page",
    "results_csv",
    "terminal_table",
    "write_report",
]
