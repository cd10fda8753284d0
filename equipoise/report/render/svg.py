"""Drawing by hand: tags that escape whatever they are given, scales with round ticks, markers and lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from ...core.escaping import visible

COLOURS = 7  # page.css has so many, and grey for the baseline
SHAPES = 4

Point = tuple[float, float]


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element; text and attribute values are escaped, `Markup` is not escaped again.

    >>> print(tag("text", "<b>", class_="label", text_anchor="end"))
    <text class="label" text-anchor="end">&lt;b&gt;</text>
    """
    given = "".join(f' {_attribute(key)}="{_text(_short(value))}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{''.join(map(_text, children))}</{name}>")


def _text(value: object) -> Markup:
    return value if isinstance(value, Markup) else escape(visible(str(value), lines=True))


def drawing(width: float, height: float, label: str, children: Iterable[Markup], **attributes: object) -> Markup:
    """An `svg` element that scales with its box and says in words what it shows."""
    box = f"0 0 {width:g} {height:g}"
    return tag("svg", *children, viewBox=box, width=width, height=height, role="img", aria_label=label, **attributes)


def both(plot: Callable[[bool], Markup]) -> Markup:
    """A drawing made twice, for wide and for narrow pages; nothing where there is nothing to draw."""
    return Markup("\n").join(filter(None, (plot(True), plot(False))))


def series(index: int, *children: object) -> Markup:
    """A group in the colour and dashes of method `index`; 0 is the baseline, in grey."""
    return tag("g", *children, class_=f"series {colour(index)}", data_method=index)


def colour(index: int) -> str:
    """The classes of a method's look in page.css: its colour, and from the second round of colours on its dashes.

    >>> colour(0), colour(3), colour(COLOURS + 3)
    ('m0', 'm3', 'm3 d1')
    """
    if not index:
        return "m0"
    again, place = divmod(index - 1, COLOURS)
    return f"m{place + 1}" + (f" d{again % SHAPES}" if again % SHAPES else "")


def marker(index: int, x: float, y: float, r: float, *children: object) -> Markup:
    """A method's mark: the baseline's is hollow; when the colours are used up the shape changes."""
    class_ = "dot" if index else "hollow"
    shape = (index - 1) // COLOURS % SHAPES if index else 0
    if shape == 0:
        return tag("circle", *children, class_=class_, cx=x, cy=y, r=r)
    outline = {
        1: [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2: [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
        3: [(0, -1.2), (1.2, 0.9), (-1.2, 0.9)],
    }[shape]
    return tag("path", *children, class_=class_, d=path([(x + r * dx, y + r * dy) for dx, dy in outline]) + "Z")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", class_=class_, x1=x1, y1=y1, x2=x2, y2=y2)


def path(points: Iterable[Point]) -> str:
    """`M…L…` through the points; a point that is not a number leaves a gap.

    >>> path([(0, 1), (2, 3), (4, math.nan), (6, 7), (8, 9)])
    'M0,1L2,3M6,7L8,9'
    """
    words, pen_down = [], False
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            words.append(f"{'L' if pen_down else 'M'}{_short(x)},{_short(y)}")
            pen_down = True
        else:
            pen_down = False
    return "".join(words)


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` laid on pixels from `start` to `end`, evenly or by their logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; beyond the limits it stays at the edge."""
        if not math.isfinite(value):
            return math.nan
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round values inside the limits, about `wanted` of them.

        >>> Scale(-0.013, 0.042, 0, 100).ticks()
        [-0.01, 0.0, 0.01, 0.02, 0.03, 0.04]
        """
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            fine = [m * 10.0**k for k in decades for m in (1, 2, 5)]
            inside = [t for t in fine if self.low <= t <= self.high]
            whole = [t for t in inside if t in {10.0**k for k in decades}]
            return whole if len(inside) > 2 * wanted and len(whole) > 1 else inside
        step = _round((self.high - self.low) / wanted)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) for k in range(first, last + 1)]


def limits(centres: Iterable[float], ends: Iterable[float] = (), reach: float = 1.0, pad: float = 0.05) -> Point:
    """From the lowest to the highest value, widened for interval `ends` by at most `reach` spans of the centres.

    With two seeds an interval can be fifty times wider than what was measured, and would leave the rest a dot.
    """
    inner = [c for c in centres if math.isfinite(c)] or [0.0, 1.0]
    low, high = min(inner), max(inner)
    rounding = 1e-9 * max(abs(low), abs(high))  # means of equal numbers differ by that much, and it is no spread
    span = high - low if high - low > rounding else abs(high) or 1.0
    outer = [min(max(e, low - reach * span), high + reach * span) for e in ends if math.isfinite(e)]
    low, high = min([low, *outer]), max([high, *outer])
    margin = pad * (high - low if high - low > rounding else span)
    return low - margin, high + margin


def decimals(ticks: Sequence[float]) -> int:
    """Digits after the point that tell the ticks apart."""
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    return max(0, -math.floor(math.log10(step) + 1e-9))


def _round(step: float) -> float:
    """The nearest of 1, 2, 5, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return power * min((1, 2, 5, 10), key=lambda m: abs(math.log(m * power / step)))


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _short(value: object) -> object:
    """Pixels to a hundredth: finer is not seen, and the page stays small."""
    return f"{round(value, 2) + 0.0:g}" if isinstance(value, float) else value
