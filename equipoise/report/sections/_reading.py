"""Reading analysis.json: null is not known, and what another version wrote in another shape is passed over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ...store import Store
from ..figures.lines import Axis, Curve, Values
from ..render.svg import tag
from ..results import Estimate, Results
from .section import Section

FILE = "analysis.json"
SHARE = Values(factor=100, digits=1, floor=0.0, ceiling=1.0)
NONE = Markup("")
Numbers = Mapping[str, Any]
Matrix = Sequence[Sequence[Any]]


def section_of(part: str, make: Callable[[Any, Results], Section | None]) -> Callable[..., Section | None]:
    """A section made from one part of the analysis, where that is there.

    What another version wrote in another shape is passed over: a figure less is no reason to have no report.
    """

    def section(store: Store, results: Results) -> Section | None:
        if not (store.path / FILE).exists():
            return None
        try:
            found = store.read_json(FILE)
            return make(found[part], results) if found.get(part) else None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            return None

    return section


def captioned(figure: Markup, sentence: str) -> Markup:
    """A figure with what it shows in a sentence; nothing where there is no figure."""
    return figure and figure + tag("figcaption", sentence)


def seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


def estimate_of(plain: Numbers) -> Estimate:
    """From JSON, where null is not known."""
    return Estimate(plain["n"], *(number(plain[name]) for name in ("mean", "low", "high")))


def whole(name: str, title: str, sentence: str, figures: Iterable[Markup], legend: bool = True) -> Section | None:
    shown = tuple(figure for figure in figures if figure)
    return Section(name, title, sentence, shown, legend, further=True) if shown else None


def number(value: Any) -> float:
    return math.nan if value is None else float(value)


def row_of(values: Iterable[Any]) -> list[float]:
    return [number(v) for v in values]


def numbers(matrix: Matrix) -> list[list[float]]:
    return [row_of(row) for row in matrix]


def without_diagonal(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[v for j, v in enumerate(row) if i != j] for i, row in enumerate(matrix)]


def mean(values: Iterable[Any]) -> float:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else math.nan


def curve_of(column: Sequence[Numbers], axis: Axis) -> Curve:
    """Layers evenly over the axis: a network with other layers than the baseline's is stretched to its length."""
    step = (axis.high - axis.low) / max(len(column) - 1, 1)
    return [(axis.low + i * step, estimate_of(e)) for i, e in enumerate(column)]


def plain_curve(places: Iterable[float], values: Iterable[Any]) -> Curve:
    """Values without intervals at their places."""
    return [(float(at), Estimate(1, number(v), math.nan, math.nan)) for at, v in zip(places, values, strict=True)]
