"""The same small drawing for each method, in rows of as many as fit: layers against layers, densities, features."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..collected import Collected, Method
from ..render.svg import Scale, drawing, line, marker, path, series, tag
from ..render.words import cut, number
from ._parts import NOTHING, heading
from .heat import Rows, Shades, cells

GAP, LARGEST, IN_A_ROW = 24.0, 220.0, 6
NAMED_CLASSES = 12  # with more than these their names would cover the points

Draw = Callable[[Method, float, float, float], Sequence[Markup]]  # method, left, top, side


def multiples(
    results: Collected, title: str, names: Sequence[str], draw: Draw, label: str, wide: bool, ratio: float = 1.0
) -> Markup:
    """A box for each of the methods in `names`, the baseline first, `ratio` as high as wide, mark and name above."""
    shown = sorted((m for m in results.methods if m.name in names), key=lambda m: not m.is_baseline)
    if not shown:
        return NOTHING
    columns = math.ceil(len(shown) / math.ceil(len(shown) / IN_A_ROW)) if wide else 2
    width = 1120.0 if wide else 360.0
    side = min((width - (columns - 1) * GAP) / columns, LARGEST)
    row = side * ratio + 44
    parts = [heading(title)]
    for place, method in enumerate(shown):
        x, y = place % columns * (side + GAP), 50 + place // columns * row
        drawn = draw(method, x, y, side)
        name = tag("text", cut(method.name, 22), tag("title", method.name), class_="name small", x=x + 14, y=y - 9)
        parts.append(series(method.index, marker(method.index, x + 5, y - 13, 4.2), name, *drawn))
    height = 50 + math.ceil(len(shown) / columns) * row - 26
    return drawing(width, height, f"{title}. {label}", parts, class_=f"{'wide' if wide else 'narrow'} rows")


# -- layers against layers -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerPair:
    """CKA of each layer of a method (rows, the deepest on top) with each of the baseline's (columns)."""

    rows: Sequence[str]
    columns: Sequence[str]
    matrix: Rows


def layer_maps(results: Collected, title: str, pairs: Mapping[str, LayerPair], wide: bool = True) -> Markup:
    """A small matrix for each method. Strengths are the same in all: none at 0, full at 1."""
    shades = Shades(0.0, 1.0)

    def draw(method: Method, x: float, y: float, side: float) -> list[Markup]:
        pair = pairs[method.name]
        parts = cells(pair.matrix[::-1], x, y, side, side, shades)
        return [tag("rect", class_="frame", x=x, y=y, width=side, height=side), *parts, *_corners(pair, x, y, side)]

    label = "; ".join(f"{name}: {_diagonal(pair)}" for name, pair in pairs.items())
    return multiples(results, title, list(pairs), draw, label, wide)


def _corners(pair: LayerPair, x: float, y: float, side: float) -> list[Markup]:
    """The first and the last layer, along the lower edge."""
    ends = [(x, pair.columns[0], "start"), (x + side, pair.columns[-1], "end")]
    return [tag("text", name, class_="count", x=at, y=y + side + 13, text_anchor=anchor) for at, name, anchor in ends]


def _diagonal(pair: LayerPair) -> str:
    same = [
        row[pair.columns.index(name)] for name, row in zip(pair.rows, pair.matrix, strict=True) if name in pair.columns
    ]
    return (
        f"{number(same[0], 2)} at {pair.rows[0]}, {number(same[-1], 2)} at {pair.rows[-1]}" if same else "other layers"
    )


# -- densities -------------------------------------------------------------------------------------------------------


def distance_densities(
    results: Collected,
    title: str,
    within: Mapping[str, Sequence[float]],
    between: Mapping[str, Sequence[float]],
    wide: bool = True,
) -> Markup:
    """Cosine distances from 0 to 2: within classes in the method's colour, between classes as a grey line."""
    highest = max(
        (v for rows in (within, between) for row in rows.values() for v in row if math.isfinite(v)), default=1.0
    )

    def draw(method: Method, x: float, y: float, side: float) -> list[Markup]:
        tall = 0.6 * side
        across, up = Scale(0.0, 2.0, x, x + side), Scale(0.0, highest**0.5, y + tall, y)
        parts = [line(x, y + tall, x + side, y + tall, "rule")]
        parts.append(_area(within[method.name], across, up, "area"))
        parts.append(_area(between[method.name], across, up, "other"))
        parts += [
            tag("text", f"{t}", class_="count", x=across(t), y=y + tall + 13, text_anchor=a)
            for t, a in ((0, "start"), (1, "middle"), (2, "end"))
        ]
        return parts

    label = "; ".join(f"{name}: within classes mostly at {number(_mode(row), 2)}" for name, row in within.items())
    return multiples(results, title, list(within), draw, label, wide, ratio=0.6)


def _area(row: Sequence[float], across: Scale, up: Scale, class_: str) -> Markup:
    """The square root of a density, so that its low parts can be seen."""
    step = 2 / len(row)
    points = [(across((i + 0.5) * step), up(math.sqrt(v))) for i, v in enumerate(row) if math.isfinite(v)]
    closed = [(across(0.0), up(0.0)), *points, (across(2.0), up(0.0))]
    return tag("path", class_=class_, d=path(closed)) if points else NOTHING


def _mode(row: Sequence[float]) -> float:
    return (max(range(len(row)), key=lambda i: row[i]) + 0.5) * 2 / len(row)


# -- features --------------------------------------------------------------------------------------------------------


def feature_maps(
    results: Collected,
    title: str,
    points: Mapping[str, Rows],
    labels: Sequence[int],
    classes: Sequence[str],
    training: int = 0,
    wide: bool = True,
) -> Markup:
    """Points of images, coloured by class, with the names of classes at their medians where they are few.

    Where the first `training` points are of training images, these are dots, and the others, of test images, crosses.
    """
    unlike = 0 < training < len(labels)

    def draw(method: Method, x: float, y: float, side: float) -> list[Markup]:
        across, up = _square(points[method.name], x, y, side)
        places = [(across(a), up(b)) for a, b in points[method.name]]
        parts = [tag("rect", class_="frame", x=x, y=y, width=side, height=side)]
        for c in sorted(set(labels)):
            own = [(p, i < training) for i, (p, label) in enumerate(zip(places, labels, strict=True)) if label == c]
            parts.append(_dots(c, [p for p, trained in own if trained or not unlike]))
            if unlike:
                parts.append(_crosses(c, [p for p, trained in own if not trained]))
        if len(set(labels)) <= NAMED_CLASSES:
            parts += [
                _class_name(classes[c], [p for p, own in zip(places, labels, strict=True) if own == c])
                for c in sorted(set(labels))
            ]
        return parts

    label = f"Each point is an image, of {len(set(labels))} classes"
    return multiples(results, title, list(points), draw, label, wide)


def _square(points: Rows, x: float, y: float, side: float) -> tuple[Scale, Scale]:
    """Scales of one unit for both directions, the points in the middle of a box."""
    lows, highs = [min(p[k] for p in points) for k in (0, 1)], [max(p[k] for p in points) for k in (0, 1)]
    half = 0.54 * max(highs[0] - lows[0], highs[1] - lows[1]) or 1.0
    middle = [(lows[k] + highs[k]) / 2 for k in (0, 1)]
    across = Scale(middle[0] - half, middle[0] + half, x, x + side)
    return across, Scale(middle[1] - half, middle[1] + half, y + side, y)


def _dots(c: int, places: Sequence[tuple[float, float]]) -> Markup:
    """Dots as a path of no length with round ends: a tenth of what circles would take."""
    d = "".join(f"M{x:.4g},{y:.4g}h0" for x, y in places)
    again = " square" if c // 7 % 2 else ""
    return tag("path", class_=f"points k{c % 7 + 1}{again}", d=d)


def _crosses(c: int, places: Sequence[tuple[float, float]]) -> Markup:
    d = "".join(f"M{x - 1.8:.4g},{y - 1.8:.4g}l3.6,3.6m0-3.6l-3.6,3.6" for x, y in places)
    return tag("path", class_=f"crosses k{c % 7 + 1}", d=d)


def _class_name(name: str, places: Sequence[tuple[float, float]]) -> Markup:
    x, y = (sorted(p[k] for p in places)[len(places) // 2] for k in (0, 1))
    return tag("text", cut(name, 10), class_="class", x=x, y=y + 4, text_anchor="middle")
