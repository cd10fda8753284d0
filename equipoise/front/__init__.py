"""The way in from Python, and for the command line: `run` a study, get its `Results`."""

from .comparison import Comparison, compare
from .results import Results
from .runs import as_study, list_methods, run

__all__ = ["Comparison", "Results", "as_study", "compare", "list_methods", "run"]
