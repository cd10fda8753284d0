"""What sections from analysis.json share: captions, and numbers that are NaN where they are not known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from markupsafe import Markup

from ...store.analysis import Estimated, Matrix, Number
from ..collected import Estimate
from ..figures.lines import Axis, Curve, Values
from ..render.svg import tag
from .section import Section

SHARE = Values(factor=100, digits=1, floor=0.0, ceiling=1.0)
NONE = Markup("")


def captioned(figure: Markup, sentence: str) -> Markup:
    """A figure with what it shows in a sentence; nothing where there is no figure."""
    return figure and figure + tag("figcaption", sentence)


def seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


def estimate_of(e: Estimated) -> Estimate:
    return Estimate(e.n, number(e.mean), number(e.low), number(e.high))


def whole(name: str, title: str, sentence: str, figures: Iterable[Markup], legend: bool = True) -> Section | None:
    shown = tuple(figure for figure in figures if figure)
    return Section(name, title, sentence, shown, legend, further=True) if shown else None


def number(value: Number) -> float:
    return math.nan if value is None else value


def row_of(values: Iterable[Number]) -> list[float]:
    return [number(v) for v in values]


def numbers(matrix: Matrix) -> list[list[float]]:
    return [row_of(row) for row in matrix]


def without_diagonal(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[v for j, v in enumerate(row) if i != j] for i, row in enumerate(matrix)]


def mean(values: Iterable[Number]) -> float:
    known = [v for v in values if v is not None]
    return fmean(known) if known else math.nan


def curve_of(column: Sequence[Estimated], axis: Axis) -> Curve:
    """Layers evenly over the axis: a network with other layers than the baseline's is stretched to its length."""
    step = (axis.high - axis.low) / max(len(column) - 1, 1)
    return [(axis.low + i * step, estimate_of(e)) for i, e in enumerate(column)]


def plain_curve(places: Iterable[float], values: Iterable[Number]) -> Curve:
    """Values without intervals at their places."""
    return [(float(at), Estimate(1, number(v), math.nan, math.nan)) for at, v in zip(places, values, strict=True)]
