"""The way in from Python, and for the command line: `run` a study, get its `Results`."""

from .board_results import BoardResults, board
from .combination import CombinedResults, combine
from .comparison import Comparison, compare
from .results import Results
from .runs import as_study, list_methods, run

__all__ = [
    "BoardResults",
    "CombinedResults",
    "Comparison",
    "Results",
    "as_study",
    "board",
    "combine",
    "compare",
    "list_methods",
    "run",
]
