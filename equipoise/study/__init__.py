"""Declares runs and drives them: recipes, workers, verdict."""

from .drive import Interrupted, run_study, single
from .executor import core_count
from .presets import PRESETS, Preset, expanded
from .runner import best_device, jobs_of
from .study import Study

__all__ = [
    "PRESETS",
    "Interrupted",
    "Preset",
    "Study",
    "best_device",
    "core_count",
    "expanded",
    "jobs_of",
    "run_study",
    "single",
]
