"""Lines of all methods over layers, severities, class sizes: a panel whose axes are given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..collected import Collected, Estimate, Method
from ..render.svg import Scale, decimals, drawing, limits, line, marker, path, series, tag
from ..render.words import cut, number
from ._parts import BOTTOM, LEFT, NOTHING, PANEL, RIGHT, TOP, back_to_front, bar, heading, rules

Curve = Sequence[tuple[float, Estimate]]  # (place, value at it)


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`; `ticks` are (place, text), those too close to the one before left out."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    words: str = ""
    log: bool = False

    @classmethod
    def of(cls, values: Sequence[float], words: str = "", log: bool = False) -> Axis:
        """From the least to the largest value, with round ticks."""
        low, high = min(values), max(values)
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
        scale = Scale(low, high, LEFT, RIGHT, log)
        return cls(low, high, [(t, f"{t:g}") for t in scale.ticks(5)], words, log)

    @classmethod
    def named(cls, names: Sequence[str], words: str = "") -> Axis:
        """The names side by side, at 0, 1, 2, …"""
        return cls(0.0, max(len(names) - 1.0, 1.0), [(float(i), name) for i, name in enumerate(names)], words)

    def scale(self, margin: float = 0.0) -> Scale:
        return Scale(self.low, self.high, LEFT + margin, RIGHT - margin, self.log)


@dataclass(frozen=True)
class Values:
    """How values are shown: times `factor`, with so many digits, on a scale that keeps within `floor` and `ceiling`.

    On a logarithmic scale what is not above the floor has no place and is left out.
    """

    factor: float = 1.0
    digits: int = 3
    log: bool = False
    floor: float = -math.inf
    ceiling: float = math.inf

    def scale(self, every: Sequence[Estimate]) -> Scale:
        means = [e.mean for e in every]
        if self.log:
            return Scale(min(means) / 1.2, max(means) * 1.2, BOTTOM, TOP, log=True)
        low, high = limits(means, (end for e in every for end in (e.low, e.high)), reach=0.25)
        return Scale(max(low, min(self.floor, min(means))), min(high, max(self.ceiling, max(means))), BOTTOM, TOP)

    def said(self, e: Estimate) -> str:
        mean = number(self.factor * e.mean, self.digits)
        if not math.isfinite(e.low):
            return mean
        ends = (number(self.factor * end, self.digits) for end in (e.low, e.high))
        return f"{mean} [{', '.join(ends)}], n = {e.n}"


def line_panel(
    results: Collected, title: str, axis: Axis, curves: Mapping[str, Curve], values: Values, marks: bool = True
) -> Markup:
    """Each method's line with the band of its intervals, and `marks` at every place."""
    known = {name: [(x, e) for x, e in curve if _shown(e, values)] for name, curve in curves.items()}
    shown = [m for m in back_to_front(results) if known.get(m.name)]
    if not shown:
        return NOTHING
    every = [e for m in shown for _, e in known[m.name]]
    x, y = axis.scale(16 if marks else 0), values.scale(every)
    parts = [heading(title), *rules(y, LEFT, RIGHT, values.factor), *_under(axis, x)]
    parts += [_line(m, known[m.name], x, y, values, marks) for m in shown]
    label = f"{title}. " + "; ".join(
        f"{m.name}: {values.said(known[m.name][-1][1])} at {_place(axis, known[m.name][-1][0])}"
        for m in reversed(shown)
    )
    return drawing(PANEL, BOTTOM + (42 if axis.words else 24), label, parts)


def mark_panel(results: Collected, title: str, axis: Axis, curves: Mapping[str, Curve], values: Values) -> Markup:
    """Each method's mark with a whisker at every place, side by side: for places that have no order."""
    shown = [m for m in back_to_front(results) if curves.get(m.name)]
    every = [e for m in shown for _, e in curves[m.name] if math.isfinite(e.mean)]
    if not every:
        return NOTHING
    x, y, step = axis.scale(50), values.scale(every), min(12.0, 90 / len(shown))
    parts = [heading(title), *rules(y, LEFT, RIGHT, values.factor), *_under(axis, x)]
    for place, m in enumerate(shown):
        aside = (place - (len(shown) - 1) / 2) * step
        parts.append(series(m.index, *(_mark(m, x(at) + aside, e, y, values) for at, e in curves[m.name])))
    label = f"{title}. " + "; ".join(
        f"{m.name}: " + ", ".join(f"{values.said(e)} at {_place(axis, at)}" for at, e in curves[m.name]) for m in shown
    )
    return drawing(PANEL, BOTTOM + 24, label, parts)


def _mark(method: Method, x: float, e: Estimate, y: Scale, values: Values) -> Markup:
    if not math.isfinite(e.mean):
        return NOTHING
    whisker = tag("path", class_="whisker", d=path([(x, y(e.low)), (x, y(e.high))]))
    return whisker + marker(method.index, x, y(e.mean), 3.6, tag("title", f"{method.name}: {values.said(e)}"))


def _shown(e: Estimate, values: Values) -> bool:
    return math.isfinite(e.mean) and (not values.log or e.mean > max(values.floor, 0))


def _under(axis: Axis, x: Scale) -> list[Markup]:
    """The last tick, and from the left all that do not touch the one before or the last."""
    parts, taken, end = [], -math.inf, axis.ticks[-1] if axis.ticks else (0.0, "")
    last = x(end[0]) - 3.4 * len(end[1]) - 4
    for place, text in axis.ticks:
        at, half = x(place), 3.4 * len(text)
        if (place, text) == end or (at - half > taken + 4 and at + half < last):
            centre = min(max(at, LEFT + half - 30), PANEL - half)
            parts.append(tag("text", text, class_="tick", x=centre, y=BOTTOM + 17, text_anchor="middle"))
            taken = at + half
    if axis.words:
        parts.append(tag("text", axis.words, class_="axis", x=(LEFT + RIGHT) / 2, y=BOTTOM + 36, text_anchor="middle"))
    return parts


def _line(method: Method, curve: Curve, x: Scale, y: Scale, values: Values, marks: bool) -> Markup:
    centre = path((x(at), y(e.mean)) for at, e in curve)
    known = [(at, e) for at, e in curve if math.isfinite(e.low)]
    edge = path([(x(at), y(e.low)) for at, e in known] + [(x(at), y(e.high)) for at, e in reversed(known)])
    parts = [tag("path", class_="band", d=f"{edge}Z")] if edge and len(known) > 1 else []
    parts.append(tag("path", class_="line", d=centre))
    tip = f"{method.name}: {values.said(curve[-1][1])}"
    parts.append(tag("path", tag("title", tip), class_="target", d=centre))
    if marks:
        parts += [
            marker(method.index, x(at), y(e.mean), 3.0, tag("title", f"{method.name}: {values.said(e)}"))
            for at, e in curve
        ]
    return series(method.index, *parts)


def _place(axis: Axis, at: float) -> str:
    return next((text for place, text in axis.ticks if place == at), f"{at:g}")


def rows_panel(results: Collected, title: str, rows: Mapping[str, Estimate], values: Values, up: bool = True) -> Markup:
    """A row for each method: mean and interval, the largest first, or the least where `up` is False."""
    shown = [m for m in results.methods if m.name in rows and math.isfinite(rows[m.name].mean)]
    if not shown:
        return NOTHING
    shown.sort(key=lambda m: rows[m.name].mean, reverse=up)
    every = [rows[m.name] for m in shown]
    low, high = limits([e.mean for e in every], (end for e in every for end in (e.low, e.high)), reach=0.5)
    x, bottom = Scale(max(low, values.floor), min(high, values.ceiling), 140.0, PANEL - 52), 34 + 26.0 * len(shown)
    parts = [heading(title)]
    ticks = x.ticks(4)
    digits = decimals([values.factor * t for t in ticks])
    for t in ticks:
        text = number(values.factor * t, digits)
        parts.append(line(x(t), 28, x(t), bottom, "grid"))
        parts.append(tag("text", text, class_="tick", x=x(t), y=bottom + 16, text_anchor="middle"))
    parts += [_row(m, rows[m.name], x, 42 + 26.0 * i, values) for i, m in enumerate(shown)]
    label = f"{title}. " + "; ".join(f"{m.name}: {values.said(rows[m.name])}" for m in shown)
    return drawing(PANEL, bottom + 24, label, parts, class_="rows")


def _row(method: Method, e: Estimate, x: Scale, y: float, values: Values) -> Markup:
    tip = tag("title", f"{method.name}: {values.said(e)}")
    return series(
        method.index,
        marker(method.index, 6, y, 4.5),
        tag("text", cut(method.name, 17), tag("title", method.name), class_="name small", x=16, y=y + 4),
        tag("text", number(values.factor * e.mean, values.digits), class_="value", x=PANEL, y=y + 4, text_anchor="end"),
        bar(x, e.low, e.high, y),
        marker(method.index, x(e.mean), y, 4.2, tip),
    )
