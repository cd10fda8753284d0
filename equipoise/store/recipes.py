"""What tells the recipes in records and documents apart, wherever their data lies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..core import Spec


def recipe_of_data(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """`recipe` without the place of its data, where it says what the data is: a moved folder is the same data.

    >>> recipe_of_data({"task": {"name": "folder(path='x', size=8)", "content": "c0ffee"}})
    {'task': {'name': 'folder(size=8)', 'content': 'c0ffee'}}
    """
    task = recipe.get("task") or {}
    if not task.get("content"):
        return dict(recipe)
    spec = Spec.parse(task["name"])
    name = str(Spec(spec.name, tuple(pair for pair in spec.params if pair[0] != "path")))
    return {**recipe, "task": {**task, "name": name}}


def identity(recipe: Mapping[str, Any]) -> str:
    """The same for two recipes that differ in no more than the place of their data."""
    return json.dumps(recipe_of_data(recipe), sort_keys=True)
