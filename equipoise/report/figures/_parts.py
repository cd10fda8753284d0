"""What the drawings share: the size of a panel, ruled axes, bars of intervals, estimates in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from markupsafe import Markup

from ...analysis.statistics.priority import ALL_METRICS
from ..collected import Collected, Estimate, Method
from ..render.svg import Scale, decimals, line, path, tag
from ..render.words import cut, interval, is_share, number, title_of, value

NOTHING = Markup("")
PANEL, LEFT, RIGHT, TOP, BOTTOM = 372.0, 38.0, 364.0, 30.0, 208.0  # a panel's width, and where its plot lies
MANY_CLASSES = 40  # from here on classes have no room for a mark, an interval and a name of their own

T = TypeVar("T")
Tracks = Sequence[tuple[float, float]]


def heading(text: str) -> Markup:
    """The title of a panel; what does not fit is cut, and there when pointed at."""
    return tag("text", cut(text, 52), tag("title", text), class_="panel", x=0, y=14)


def rules(y: Scale, left: float, right: float, factor: float = 1) -> list[Markup]:
    """Horizontal rules with their values, times `factor`."""
    ticks = y.ticks(5)
    digits = decimals([factor * t for t in ticks])
    parts = []
    for t in ticks:
        text = f"{t:g}" if y.log else number(factor * t, digits)
        parts.append(line(left, y(t), right, y(t), "grid"))
        parts.append(tag("text", text, class_="tick", x=left - 7, y=y(t) + 4, text_anchor="end"))
    return parts


def difference_axis(
    metric: str, baseline: str, is_right_better: bool, x: Scale, tracks: Tracks, bottom: float, wide: bool
) -> list[Markup]:
    """Of differences to a baseline: the zero line and the grid over the `tracks` (from, to), values and words below."""
    factor = 100 if is_share(metric) else 1
    ticks = x.ticks(6 if wide else 4)
    digits = decimals([factor * t for t in ticks])
    parts = []
    for t in ticks:
        text = number(factor * t, digits, sign=t != 0)
        parts.append(tag("text", text, class_="tick", x=x(t), y=bottom + 17, text_anchor="middle"))
        parts += [line(x(t), start, x(t), end, "grid" if t else "zero") for start, end in tracks]
    what = f"{title_of(metric)}: difference to {baseline}" if wide else "Difference to the baseline"
    unit = "points" if is_share(metric) else ALL_METRICS[metric].unit
    words = f"{what} in {unit} ({'right' if is_right_better else 'left'} is better)"
    middle = (x.start + x.end) / 2
    return [*parts, tag("text", words, class_="axis", x=middle, y=bottom + 37, text_anchor="middle")]


def bar(x: Scale, low: float, high: float, y: float) -> Markup:
    """An interval; where it leaves the drawing it ends in an arrow instead of a cap."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return NOTHING
    ends = []
    for end, inward, outside in ((low, 1, low < x.low), (high, -1, high > x.high)):
        back = 5 * inward if outside else 0
        ends.append(path([(x(end) + back, y - 4), (x(end), y), (x(end) + back, y + 4)]))
    return tag("path", class_="range", d=path([(x(low), y), (x(high), y)]) + "".join(ends))


def band(x: Scale, low: float, high: float, y: float) -> Markup:
    """A second, wider interval behind a bar, cut where it leaves the drawing."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return NOTHING
    start, end = x(max(low, x.low)), x(min(high, x.high))
    return tag("rect", class_="band", x=start, y=y - 5, width=max(end - start, 0), height=10)


def back_to_front(results: Collected) -> list[Method]:
    """The best method is drawn last, on top."""
    return sorted(results.methods, key=lambda m: -m.rank)


def said(e: Estimate, name: str) -> str:
    return f"{value(e.mean, name)} {interval(e.low, e.high, name)}, n = {e.n}"


def runs_of(items: Sequence[T], parts: int) -> list[Sequence[T]]:
    """The items cut into `parts` runs as even as can be, none of them empty.

    >>> runs_of("abcdefg", 3), runs_of("ab", 3)
    (['ab', 'cde', 'fg'], ['a', 'b'])
    """
    parts = min(parts, len(items))
    cuts = [round(i * len(items) / parts) for i in range(parts + 1)] if parts else [0]
    return [items[a:b] for a, b in pairwise(cuts)]
