"""Packages that are folders of methods, one a file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any


def exported(package: str, path: Iterable[str]) -> dict[str, Any]:
    """Import the modules of a package, and give by name what they list in their `__all__`.

    Those whose names begin with an underscore are the package's own.
    """
    names: dict[str, Any] = {}
    for name in sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_")):
        module = importlib.import_module(f"{package}.{name}")
        names |= {each: getattr(module, each) for each in getattr(module, "__all__", ())}
    return names
