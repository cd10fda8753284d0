"""4 · Training: recipe, objective, plan, loop, predictions."""

from .fit import Fitting, Stopped, fit, fit_one
from .loop import Diverged, Run
from .objective import Objective, Terms
from .pack import Pack, fit_pack
from .plan import Plan
from .predict import predict
from .recipe import DIALS, Mistakes, Recipe, TaskChoice

__all__ = [
    "DIALS",
    "Diverged",
    "Fitting",
    "Mistakes",
    "Objective",
    "Pack",
    "Plan",
    "Recipe",
    "Run",
    "Stopped",
    "TaskChoice",
    "Terms",
    "fit",
    "fit_one",
    "fit_pack",
    "predict",
]
