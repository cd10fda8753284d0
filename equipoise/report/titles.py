"""What to call the data and the network of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from ..core import Spec

WHERE = ("path", "groups", "leave_out")  # parameters of tasks that say where something lies


def data_name(recipe: Mapping[str, Any]) -> str:
    """The name of a data set, or of the folder that holds it.

    >>> data_name({"task": {"name": "folder(path='/data/photos', size=64)"}})
    'photos'
    """
    spec = Spec.parse(str((recipe.get("task") or {}).get("name") or "data"))
    return PurePath(str(dict(spec.params).get("path") or spec.name)).name


def task_title(task: str) -> str:
    """A task without what is not chosen and where things lie; one's own images by the name of their folder.

    >>> task_title("folder(path='/data/photos', size=64, resize=None, leave_out='/data/broken.csv')")
    'photos(size=64)'
    """
    if not task:
        return ""
    chosen = ((name, value) for name, value in Spec.parse(task).params if value is not None and name not in WHERE)
    return str(Spec(data_name({"task": {"name": task}}), tuple(chosen)))


def data_title(recipe: Mapping[str, Any]) -> str:
    """The same with what was done to the class sizes.

    >>> data_title({"task": {"name": "digits", "imbalance": "long_tailed", "ratio": 20.0}})
    'digits, long-tailed 20'
    """
    task = recipe.get("task") or {}
    if not task.get("imbalance"):
        return data_name(recipe)
    return f"{data_name(recipe)}, {str(task['imbalance']).replace('_', '-')} {task.get('ratio', 1.0):g}"


def network_name(recipe: Mapping[str, Any]) -> str:
    """The network without its parameters.

    >>> network_name({"model": "cnn_small(width=32)"})
    'cnn_small'
    """
    return Spec.parse(str(recipe.get("model") or "network")).name
