"""The way in from Python, and for the command line: `run` a study, get its `Results`."""

from .results import Results
from .runs import as_study, list_methods, run

__all__ = ["Results", "as_study", "list_methods", "run"]
