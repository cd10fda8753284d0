"""Reliability: how often a method is right among the samples it is equally sure of."""

from __future__ import annotations

import math

from markupsafe import Markup

from ..collected import Bin, Collected, Method
from ..render.svg import Scale, drawing, line, marker, path, series, tag
from ..render.words import number, value
from ._parts import LEFT, NOTHING, PANEL, RIGHT, TOP, back_to_front, heading, rules

FOOT = 262.0  # lower than other panels: the plot is near square
FEWEST = 0.004  # of all samples; a bin with fewer is noise, and has no mark


def reliability_plot(results: Collected) -> Markup:
    """A panel of the reliability of all methods."""
    shown = [m for m in back_to_front(results) if m.reliability]
    if not shown:
        return NOTHING
    parts = [*_square("Accuracy of equally confident predictions, %"), *(_line(m) for m in shown)]
    return drawing(PANEL, FOOT + 42, "Reliability of each method; on the diagonal, confidence is accuracy", parts)


def reliability_diagram(method: Method) -> Markup:
    """A panel of one method: its line, its distance to the diagonal, and how many predictions are how confident."""
    if not method.reliability:
        return NOTHING
    x, y, bins = Scale(0.0, 1.0, LEFT, RIGHT), Scale(0.0, 1.0, FOOT, TOP), method.reliability
    most, width = max(b.n for b in bins), (RIGHT - LEFT) / len(bins)
    ece = method.estimates["ece"]
    parts = _square(f"Reliability, % (ECE {value(ece.mean, 'ece')} ± {value(ece.half, 'ece')})")
    for place, b in enumerate(bins):
        tall = 44 * b.n / most
        tip = tag("title", f"{b.n} predictions of confidence {_range(place, len(bins))}")
        box = {"x": LEFT + place * width + 1, "y": FOOT - tall, "width": width - 2, "height": tall}
        parts.append(tag("rect", tip, class_="size", **box))
    known = _known(bins)
    line_up = [(x(b.sure), y(b.accuracy)) for b in known]
    back_down = [(x(b.sure), y(b.sure)) for b in reversed(known)]
    gap = tag("path", class_="band", d=path(line_up + back_down) + "Z")
    label = f"Reliability of {method.name}. " + "; ".join(
        f"confidence {_percent(b.sure)}: right in {_percent(b.accuracy)} of {b.n}" for b in known
    )
    return drawing(PANEL, FOOT + 42, label, [*parts, series(method.index, gap), _line(method)])


def _line(method: Method) -> Markup:
    x, y = Scale(0.0, 1.0, LEFT, RIGHT), Scale(0.0, 1.0, FOOT, TOP)
    bins, whole = _known(method.reliability), sum(b.n for b in method.reliability)
    drawn = [tag("path", class_="line", d=path((x(b.sure), y(b.accuracy)) for b in bins))]
    for b in bins:
        words = f"{method.name}: of {b.n} predictions, {_percent(b.sure)} sure, {_percent(b.accuracy)} right"
        size = 2 + 3 * math.sqrt(b.n / whole)
        drawn.append(marker(method.index, x(b.sure), y(b.accuracy), size, tag("title", words)))
    return series(method.index, *drawn)


def _square(title: str) -> list[Markup]:
    x, y = Scale(0.0, 1.0, LEFT, RIGHT), Scale(0.0, 1.0, FOOT, TOP)
    parts = [heading(title), *rules(y, LEFT, RIGHT, factor=100), line(x(0), y(0), x(1), y(1), "diagonal")]
    for t in (0, 0.2, 0.4, 0.6, 0.8, 1):
        anchor = "end" if t == 1 else "middle"
        parts.append(tag("text", f"{100 * t:g}", class_="tick", x=x(t), y=FOOT + 17, text_anchor=anchor))
    return [
        *parts,
        tag("text", "Confidence, %", class_="axis", x=(LEFT + RIGHT) / 2, y=FOOT + 36, text_anchor="middle"),
    ]


def _known(bins: tuple[Bin, ...]) -> list[Bin]:
    least = max(1.0, FEWEST * sum(b.n for b in bins))
    return [b for b in bins if b.n >= least]


def _percent(share: float) -> str:
    return f"{number(100 * share)} %"


def _range(place: int, bins: int) -> str:
    return f"{number(100 * place / bins, 0)} to {number(100 * (place + 1) / bins, 0)} %"
