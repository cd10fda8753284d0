"""Declares runs and drives them: recipes, workers, verdict.

Whatever is named here is imported when it is first asked for: on a node of a cluster, what watches over a worker does
without PyTorch, which takes seconds to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.extras import require

# jinja2 is for the report it ends with: this is not told after hours
require("a study", "scipy", "safetensors", "jinja2", "rich")

if TYPE_CHECKING:
    from .binding import bound as bound
    from .plan.cost import RunTimes as RunTimes
    from .plan.forecast import forecast as forecast
    from .plan.plan import find_spread as find_spread
    from .plan.plan import print_looks as print_looks
    from .plan.plan import print_plan as print_plan
    from .plan.rounds import Budget as Budget
    from .plan.rounds import NoTime as NoTime
    from .plan.rounds import new_rounds as new_rounds
    from .plan.rounds import run_until_decided as run_until_decided
    from .presets import PRESETS as PRESETS
    from .presets import Preset as Preset
    from .presets import expand_preset as expand_preset
    from .probe import Asked as Asked
    from .probe import analyze_study as analyze_study
    from .probe import print_analysis as print_analysis
    from .probe.predictor import fitted_run as fitted_run
    from .run.hardware import best_device as best_device
    from .run.how import How as How
    from .run.job import jobs_of as jobs_of
    from .run.listener import Listener as Listener
    from .run.listener import Watch as Watch
    from .run.profile import print_profile as print_profile
    from .run.runs import Interrupted as Interrupted
    from .run.study import run_study as run_study
    from .run.study import study_of_one as study_of_one
    from .run.study import usual_listener as usual_listener
    from .run.terminal import OnTerminal as OnTerminal
    from .run.together import processes as processes
    from .run.together import run_together as run_together
    from .run.together import started_by_torchrun as started_by_torchrun
    from .run.workers import Event as Event
    from .study import Study as Study
    from .study import name_of as name_of
    from .study import near as near
    from .toml import read_toml as read_toml
    from .trained import TrainedNetwork as TrainedNetwork
    from .trained import trained_network as trained_network
    from .tune.settings import Tuning as Tuning
    from .tune.tune import tune_study as tune_study
    from .tune.write import print_outcome as print_outcome
    from .tune.write import write_outcome as write_outcome

_PLACES = {
    "PRESETS": "presets",
    "Asked": "probe",
    "Budget": "plan.rounds",
    "Event": "run.workers",
    "How": "run.how",
    "Interrupted": "run.runs",
    "Listener": "run.listener",
    "NoTime": "plan.rounds",
    "OnTerminal": "run.terminal",
    "Preset": "presets",
    "RunTimes": "plan.cost",
    "Study": "study",
    "TrainedNetwork": "trained",
    "Tuning": "tune.settings",
    "Watch": "run.listener",
    "analyze_study": "probe",
    "best_device": "run.hardware",
    "bound": "binding",
    "expand_preset": "presets",
    "find_spread": "plan.plan",
    "fitted_run": "probe.predictor",
    "forecast": "plan.forecast",
    "jobs_of": "run.job",
    "name_of": "study",
    "near": "study",
    "new_rounds": "plan.rounds",
    "print_analysis": "probe",
    "print_looks": "plan.plan",
    "print_outcome": "tune.write",
    "print_plan": "plan.plan",
    "print_profile": "run.profile",
    "processes": "run.together",
    "read_toml": "toml",
    "run_study": "run.study",
    "run_together": "run.together",
    "run_until_decided": "plan.rounds",
    "started_by_torchrun": "run.together",
    "study_of_one": "run.study",
    "trained_network": "trained",
    "tune_study": "tune.tune",
    "usual_listener": "run.study",
    "write_outcome": "tune.write",
}
__all__ = [*_PLACES]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(f".{_PLACES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
