"""`equipoise analyze`: what the methods of a study did to predictions and representations.

DIR/analysis.json        all that was found, for the report and for programs
DIR/analysis.md          its key table
DIR/analysis/KEY.*       what was measured of each run, so that a stopped analysis goes on
"""

from .probe import Asked, analyze_study
from .table import analysis_markdown, print_analysis

__all__ = ["Asked", "analysis_markdown", "analyze_study", "print_analysis"]
