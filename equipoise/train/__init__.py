"""4 · Training: recipe, objective, plan, loop, predictions."""

from .fit import Stopped, fit
from .loop import Diverged, Run
from .objective import Objective, Terms
from .plan import Plan
from .predict import predict
from .recipe import DIALS, Mistakes, Recipe, TaskChoice

__all__ = [
    "DIALS",
    "Diverged",
    "Mistakes",
    "Objective",
    "Plan",
    "Recipe",
    "Run",
    "Stopped",
    "TaskChoice",
    "Terms",
    "fit",
    "predict",
]
