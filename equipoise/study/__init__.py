"""Declares runs and drives them: recipes, workers, verdict."""

from .drive import Interrupted, run_study, single
from .executor import core_count
from .runner import best_device, jobs_of
from .study import Study

__all__ = ["Interrupted", "Study", "best_device", "core_count", "jobs_of", "run_study", "single"]
