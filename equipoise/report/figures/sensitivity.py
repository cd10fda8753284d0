"""Sensitivity: the validation score at each value of a dial that was tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ..collected import Collected, Estimate
from ..render.svg import Scale, drawing, limits, line, marker, path, series, tag
from ..render.words import cut, is_share, title_of
from ._parts import BOTTOM, LEFT, NOTHING, PANEL, RIGHT, TOP, heading, rules, said


@dataclass(frozen=True)
class Trial:
    """The score of a method with one value of one of its dials."""

    method: str
    dial: str
    value: Any
    score: Estimate


def sensitivity_plot(results: Collected, dial: str, trials: Sequence[Trial]) -> Markup:
    """A panel of one dial: each method's score at each value, with its interval; the best value is marked larger."""
    known = [t for t in trials if t.dial == dial and math.isfinite(t.score.mean)]
    if not known:
        return NOTHING
    name = f"valid_{results.metric}"
    low, high = limits([t.score.mean for t in known], (e for t in known for e in (t.score.low, t.score.high)), 0.5)
    y, places = Scale(low, high, BOTTOM, TOP), _places([t.value for t in known])
    factor = 100 if is_share(name) else 1
    parts = [heading(dial), *rules(y, LEFT, RIGHT, factor)]
    parts += _values(places)
    methods = list(dict.fromkeys(t.method for t in known))
    parts += [_trial_series(results, m, [t for t in known if t.method == m], places, y, name) for m in methods]
    words = f"{title_of(name)}{', %' if factor == 100 else ''}"
    parts.append(tag("text", words, class_="axis", x=(LEFT + RIGHT) / 2, y=BOTTOM + 36, text_anchor="middle"))
    label = f"{title_of(name)} against {dial}. " + "; ".join(
        f"{t.method} at {t.value}: {said(t.score, name)}" for t in known
    )
    return drawing(PANEL, BOTTOM + 42, label, parts)


def _places(values: Sequence[Any]) -> dict[str, float]:
    """The pixel of each value: by size where all are numbers (by its logarithm where they span a lot), else evenly."""
    numbers = {str(v): float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)}
    texts = list(dict.fromkeys(map(str, values)))
    if len(numbers) < len(texts) or len(numbers) < 2:
        step = (RIGHT - LEFT) / max(len(texts), 1)
        return {text: LEFT + (i + 0.5) * step for i, text in enumerate(texts)}
    ordered = sorted(numbers.items(), key=lambda item: item[1])
    low, high, left, right = ordered[0][1], ordered[-1][1], LEFT + 14, RIGHT - 14
    if low > 0.5 and 0.9 < high < 1:  # such as beta = 0.9, 0.99, 0.999: what matters is the distance to 1
        apart = Scale(1 - high, 1 - low, right, left, log=True)
        return {text: apart(1 - v) for text, v in ordered}
    x = Scale(low, high, left, right, log=low > 0 and high > 10 * low)
    return {text: x(v) for text, v in ordered}


def _values(places: dict[str, float]) -> list[Markup]:
    """The values under the axis; of those too close to each other, one."""
    parts, last = [], -math.inf
    for text, at in sorted(places.items(), key=lambda item: item[1]):
        parts.append(line(at, BOTTOM, at, BOTTOM + 4, "rule"))
        if at - last > 7 * len(cut(text, 12)):
            parts.append(tag("text", cut(text, 12), class_="tick", x=at, y=BOTTOM + 17, text_anchor="middle"))
            last = at
    return parts


def _trial_series(
    results: Collected, method: str, trials: Sequence[Trial], places: dict[str, float], y: Scale, name: str
) -> Markup:
    index = next((m.index for m in results.methods if m.name == method), len(results.methods))
    points = sorted(((places[str(t.value)], t) for t in trials), key=lambda point: point[0])
    sign = 1 if results.verdict.higher_is_better else -1
    best = max(trials, key=lambda t: sign * t.score.mean)
    whiskers = "".join(path([(x, y(t.score.low)), (x, y(t.score.high))]) for x, t in points)
    drawn = [
        tag("path", class_="line", d=path((x, y(t.score.mean)) for x, t in points)),
        tag("path", class_="whisker", d=whiskers),
    ]
    for x, t in points:
        tip = tag("title", f"{method}, {t.dial} = {t.value}: {said(t.score, name)}")
        drawn.append(marker(index, x, y(t.score.mean), 5.0 if t is best else 3.0, tip))
    return series(index, *drawn)
