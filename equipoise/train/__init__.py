"""4 · Training: recipe, objective, plan, loop, predictions."""

from .embed import embed, embedded
from .fit import Fitting, Stopped, fit, fit_one
from .layout import LAYOUTS, fastest_layout
from .loop import Diverged, Run
from .network import untrained_network
from .objective import Objective, Terms
from .pack import Pack, fit_pack
from .plan import Plan
from .predict import predict
from .profile import StepTimes, profile_step
from .recipe import DIALS, Mistakes, Recipe, TaskChoice
from .repeatable import choose_convolutions
from .stacked import why_not_stacked
from .team import ALONE, Processes, Team

__all__ = [
    "ALONE",
    "DIALS",
    "LAYOUTS",
    "Diverged",
    "Fitting",
    "Mistakes",
    "Objective",
    "Pack",
    "Plan",
    "Processes",
    "Recipe",
    "Run",
    "StepTimes",
    "Stopped",
    "TaskChoice",
    "Team",
    "Terms",
    "choose_convolutions",
    "embed",
    "embedded",
    "fastest_layout",
    "fit",
    "fit_one",
    "fit_pack",
    "predict",
    "profile_step",
    "untrained_network",
    "why_not_stacked",
]
