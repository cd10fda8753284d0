"""Training curves: mean over the finished runs, with the band of its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from ..collected import Collected, Estimate, Method
from ..render.svg import Scale, drawing, limits, path, series, tag
from ..render.words import is_share, title_of
from ._parts import BOTTOM, LEFT, NOTHING, PANEL, RIGHT, TOP, back_to_front, heading, rules, said

MOST_POINTS = 150  # of a line that is 330 pixels wide


def curve_plot(results: Collected, name: str, only: Sequence[Method] | None = None) -> Markup:
    """A panel of one curve over the epochs, of every method, or of those in `only`, the last on top."""
    shown = [m for m in (only or back_to_front(results)) if any(e.n for e in m.curves.get(name, ()))]
    if not shown:
        return NOTHING
    y = _curve_scale(name, [e for m in shown for e in m.curves[name] if e.n])
    epochs = max(len(m.curves[name]) for m in shown)
    x = Scale(1, max(epochs, 2), LEFT, RIGHT)
    title = title_of(name) + (", %" if is_share(name) else ", log scale" if y.log else "")
    parts = [heading(title), *rules(y, LEFT, RIGHT, factor=100 if is_share(name) else 1)]
    parts += [
        tag("text", f"{t:g}", class_="tick", x=x(t), y=BOTTOM + 17, text_anchor="middle")
        for t in x.ticks(5)
        if t == int(t) and t < 0.74 * epochs
    ]
    parts.append(tag("text", f"epoch {epochs}", class_="tick", x=RIGHT, y=BOTTOM + 17, text_anchor="end"))
    parts += [_curve_series(m, name, x, y) for m in shown]
    label = f"{title_of(name)} over {epochs} epochs, mean of the finished runs with 95 % intervals. " + "; ".join(
        _end(m, name) for m in reversed(shown)
    )
    return drawing(PANEL, BOTTOM + 24, label, parts)


def _curve_scale(name: str, known: list[Estimate]) -> Scale:
    """Losses of unlike methods may differ a hundredfold; a logarithmic scale then shows them all."""
    means = [e.mean for e in known]
    low, high = limits(means, (end for e in known for end in (e.low, e.high)), reach=0.25)
    if min(means) >= 0:
        low = max(low, 0.0)
    if is_share(name):
        return Scale(low, min(high, 1.0) if max(means) <= 1 else high, BOTTOM, TOP)
    if min(means) > 0 and max(means) > 30 * min(means):
        return Scale(min(means) / 1.2, max(means) * 1.2, BOTTOM, TOP, log=True)
    return Scale(low, high, BOTTOM, TOP)


def _curve_series(method: Method, name: str, x: Scale, y: Scale) -> Markup:
    points = _thinned([(x(i), e) for i, e in enumerate(method.curves[name], start=1)])
    centre = path((at, y(e.mean)) for at, e in points)
    known = [(at, e) for at, e in points if math.isfinite(e.low)]
    edge = path([(at, y(e.low)) for at, e in known] + [(at, y(e.high)) for at, e in reversed(known)])
    band = tag("path", class_="band", d=f"{edge}Z") if edge else NOTHING
    tip = tag("title", _end(method, name))
    # a wide invisible line on top is easier to point at
    return series(method.index, band, tag("path", class_="line", d=centre), tag("path", tip, class_="target", d=centre))


def _thinned(points: list[tuple[float, Estimate]]) -> list[tuple[float, Estimate]]:
    """Every k-th point and the last: a line has no more pixels than that."""
    every = math.ceil(len(points) / MOST_POINTS)
    return [p for i, p in enumerate(points) if i % every == 0 or i == len(points) - 1]


def _end(method: Method, name: str) -> str:
    epoch, last = next((i, e) for i, e in reversed(list(enumerate(method.curves[name], start=1))) if e.n)
    return f"{method.name}: {said(last, name)} at epoch {epoch}"
