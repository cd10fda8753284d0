"""Declares runs and drives them: recipes, workers, verdict."""

from ..core.extras import require

# jinja2 is for the report it ends with: this is not told after hours
require("a study", "scipy", "safetensors", "jinja2", "rich")

from .binding import bound
from .plan.cost import RunTimes
from .plan.forecast import forecast
from .plan.plan import find_spread, print_looks, print_plan
from .plan.rounds import Budget, NoTime, new_rounds, run_until_decided
from .presets import PRESETS, Preset, expand_preset
from .probe import Asked, analyze_study, print_analysis
from .probe.predictor import fitted_run
from .run.hardware import best_device, core_count
from .run.how import How
from .run.job import jobs_of
from .run.listener import Listener, Watch
from .run.profile import print_profile
from .run.runs import Interrupted
from .run.study import run_study, study_of_one, usual_listener
from .run.terminal import OnTerminal
from .run.together import processes, run_together, started_by_torchrun
from .run.workers import Event
from .study import Study, name_of, near
from .toml import read_toml
from .trained import TrainedNetwork, trained_network
from .tune.settings import Tuning
from .tune.tune import tune_study
from .tune.write import print_outcome, write_outcome

__all__ = [
    "PRESETS",
    "Asked",
    "Budget",
    "Event",
    "How",
    "Interrupted",
    "Listener",
    "NoTime",
    "OnTerminal",
    "Preset",
    "RunTimes",
    "Study",
    "TrainedNetwork",
    "Tuning",
    "Watch",
    "analyze_study",
    "best_device",
    "bound",
    "core_count",
    "expand_preset",
    "find_spread",
    "fitted_run",
    "forecast",
    "jobs_of",
    "name_of",
    "near",
    "new_rounds",
    "print_analysis",
    "print_looks",
    "print_outcome",
    "print_plan",
    "print_profile",
    "processes",
    "read_toml",
    "run_study",
    "run_together",
    "run_until_decided",
    "started_by_torchrun",
    "study_of_one",
    "trained_network",
    "tune_study",
    "usual_listener",
    "write_outcome",
]
