"""Sections from analysis.json, which `equipoise analyze` writes. What cannot be read is said where it would stand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...core import EquipoiseError
from ...store import Analysis, Damaged, Store
from ...store.store import REMEDIES
from ..collected import Collected
from .section import Section


def unreadable(store: Store, results: Collected) -> Section | None:
    """One sentence in the place of all sections of an analysis that cannot be read at all, or is of a newer version."""
    try:
        if store.holds(Analysis):
            _part(store, "baseline")
    except EquipoiseError as error:
        return said("analysis", "Analysis", error)
    return None


def analyzed(
    part: str, name: str, title: str, make: Callable[[Any, Collected], Section | None]
) -> Callable[[Store, Collected], Section | None]:
    """The section `name` from one part of the analysis; none where that was not measured."""

    def section(store: Store, results: Collected) -> Section | None:
        if not store.holds(Analysis) or unreadable(store, results):
            return None
        try:
            content = _part(store, part)
            return make(content, results) if content else None
        except EquipoiseError as error:
            return said(name, title, error)
        except (LookupError, ValueError, ArithmeticError) as error:  # each is what it should be, but not all together
            problem = f"what is in {part} does not fit together ({error})"
            return said(name, title, Damaged(store.path / Analysis.FILE, problem, REMEDIES[Analysis.FILE]))

    return section


def _part(store: Store, name: str) -> Any:
    return store.read(Analysis.FILE, partial(Analysis.part, name))


def said(name: str, title: str, error: EquipoiseError) -> Section:
    """A section that says why it cannot be shown."""
    return Section(name, title, f"This cannot be shown: {error}", legend=False, further=True)
