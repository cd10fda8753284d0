"""Equipoise: image classifiers that treat their classes evenly, and evidence for what a data set wants.

The way in is ``equipoise.run(study) -> Results``. Each part also works alone: ``from equipoise.losses import LDAMLoss``
needs torch and numpy, nothing else. Whatever is named here is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .auditing import Audit as Audit
    from .auditing import audit as audit
    from .core import EquipoiseError as EquipoiseError
    from .data import load_task as load_task
    from .deploy import TrainedModel as TrainedModel
    from .deploy import predict as predict
    from .front import Results as Results
    from .front import board as board
    from .front import combine as combine
    from .front import compare as compare
    from .front import list_methods as list_methods
    from .front import run as run
    from .improvement import improve as improve
    from .models import create_model as create_model
    from .study import Study as Study
    from .train import Recipe as Recipe

_NAMES = {
    "Audit": "auditing",
    "EquipoiseError": "core",
    "Recipe": "train",
    "Results": "front",
    "Study": "study",
    "TrainedModel": "deploy",
    "audit": "auditing",
    "board": "front",
    "combine": "front",
    "compare": "front",
    "create_model": "models",
    "improve": "improvement",
    "list_methods": "front",
    "load_task": "data",
    "predict": "deploy",
    "run": "front",
}
_PARTS = (
    "analysis", "auditing", "cli", "core", "data", "deploy", "front", "imbalance", "improvement", "losses", "mixing",
    "models", "norms", "report", "store", "study", "testing", "train",
)  # fmt: skip
__all__ = ["__version__", *_NAMES, *_PARTS]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f".{_NAMES[name]}", __name__), name)
    if name in _PARTS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
