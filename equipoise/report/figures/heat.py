"""Matrices as cells of one colour: the fuller, the larger the value. With a tree of the rows where there is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean

from markupsafe import Markup

from ..collected import Collected, Method
from ..render.svg import colour, drawing, marker, path, series, tag
from ..render.words import cut, number
from ._parts import NOTHING, PANEL, heading

LEVELS = 24  # of strength; cells of one level are one path, so that a large matrix is a small file
FAINTEST, FULLEST = 0.05, 0.95
LABELLED = 12  # with more rows than this a number has no room in its cell

Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Shades:
    """Strengths for the values of a matrix from `low` to `high`, which are said times `factor` with so many digits."""

    low: float
    high: float
    factor: float = 1.0
    digits: int = 2

    @classmethod
    def of(cls, matrix: Rows, factor: float = 1.0, digits: int = 2) -> Shades:
        known = [v for row in matrix for v in row if math.isfinite(v)]
        return cls(min(known, default=0.0), max(known, default=1.0), factor, digits)

    def __call__(self, value: float) -> float:
        """The opacity of a cell, in `LEVELS` steps."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        step = round(min(max(share, 0.0), 1.0) * (LEVELS - 1)) / (LEVELS - 1)
        return FAINTEST + (FULLEST - FAINTEST) * step

    def said(self, value: float) -> str:
        return number(self.factor * value, self.digits)


def cells(matrix: Rows, left: float, top: float, width: float, height: float, shades: Shades) -> list[Markup]:
    """The matrix in a box; what is not known has no cell."""
    wide, tall = width / max(len(matrix[0]), 1), height / len(matrix)
    gap = 1.0 if min(wide, tall) > 8 else 0.0
    levels: dict[float, list[str]] = {}
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            if math.isfinite(value):
                x, y, w, h = left + j * wide, top + i * tall, wide - gap, tall - gap
                box = f"M{x:.4g},{y:.4g}h{w:.4g}v{h:.4g}h{-w:.4g}z"
                levels.setdefault(shades(value), []).append(box)
    return [tag("path", class_="heat", fill_opacity=s, d="".join(boxes)) for s, boxes in sorted(levels.items())]


def numbers_in(matrix: Rows, left: float, top: float, side: tuple[float, float], shades: Shades) -> list[Markup]:
    """Each value in its cell."""
    parts = []
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            if math.isfinite(value):
                strong = " strong" if shades(value) > 0.55 else ""
                at = {"x": left + (j + 0.5) * side[0], "y": top + (i + 0.5) * side[1] + 4, "text_anchor": "middle"}
                parts.append(tag("text", shades.said(value), class_=f"share{strong}", **at))
    return parts


def shade_key(shades: Shades, left: float, top: float, width: float, words: str) -> list[Markup]:
    """A strip from the least value to the largest, with both and what they are."""
    steps = [shades.low + (shades.high - shades.low) * (i + 0.5) / LEVELS for i in range(LEVELS)]
    ends = [(left, shades.low, "start"), (left + width, shades.high, "end")]
    return [
        *cells([steps], left, top, width, 9.0, shades),
        *(tag("text", shades.said(v), class_="tick", x=x, y=top + 24, text_anchor=a) for x, v, a in ends),
        tag("text", words, class_="tick", x=left + width / 2, y=top + 24, text_anchor="middle"),
    ]


# -- methods against methods -----------------------------------------------------------------------------------------


def method_matrix(results: Collected, title: str, names: Sequence[str], matrix: Rows, shades: Shades) -> Markup:
    """A panel: a row and a column for each method, the columns by their marks; the diagonal is of one method alone."""
    by_name = {m.name: m for m in results.methods}
    methods = [by_name[name] for name in names if name in by_name]
    if len(methods) < len(names) or not any(math.isfinite(v) for row in matrix for v in row):
        return NOTHING
    left, top = 128.0, 46.0
    step = min((PANEL - left) / len(names), 44.0)
    side, tall = step * len(names), max(step, 20.0) if len(names) <= LABELLED else step
    parts = [heading(title), *cells(matrix, left, top, side, tall * len(names), shades)]
    if len(names) <= LABELLED:
        parts += numbers_in(matrix, left, top, (step, tall), shades)
    for i, method in enumerate(methods):
        y = top + (i + 0.5) * tall
        parts.append(_marked(method, left - 10, y, left + (i + 0.5) * step, top - 9))
        if tall >= 11 or not i % math.ceil(11 / tall):
            name = tag("text", cut(method.name, 15), tag("title", method.name), class_="name small")
            parts.append(_placed(name, left - 20, y + 4))
    bottom = top + tall * len(names)
    parts += shade_key(shades, left, bottom + 10, max(side, 120.0), "")
    label = f"{title}. " + "; ".join(_in_words(names, matrix, shades))
    return drawing(PANEL, bottom + 40, label, parts)


def _placed(text: Markup, x: float, y: float) -> Markup:
    return tag("g", text, transform=f"translate({x:g},{y:g})", text_anchor="end")


def _marked(method: Method, x: float, y: float, column: float, top: float) -> Markup:
    """A method's mark beside its row and above its column."""
    tip = tag("title", method.name)
    marks = marker(method.index, x, y, 4.2, tip) + marker(method.index, column, top, 4.2, tip)
    return tag("g", marks, class_=colour(method.index))


def _in_words(names: Sequence[str], matrix: Rows, shades: Shades) -> list[str]:
    """The pairs with the largest and the least value."""
    pairs = [
        (matrix[i][j], f"{names[i]} and {names[j]}")
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if math.isfinite(matrix[i][j])
    ]
    if not pairs:
        return []
    (least, low), (most, high) = min(pairs), max(pairs)
    return [f"most alike are {high} ({shades.said(most)})", f"least {low} ({shades.said(least)})"]


def named_rows(
    results: Collected, title: str, rows: Sequence[str], names: Sequence[str], matrix: Rows, shades: Shades
) -> Markup:
    """A panel: a row for each of `rows`, a column for each method, known by its mark."""
    index = {m.name: m.index for m in results.methods}
    if not rows or any(name not in index for name in names):
        return NOTHING
    left, top, tall = 128.0, 46.0, 20.0
    step = min((PANEL - left) / len(names), 44.0)
    parts = [heading(title), *cells(matrix, left, top, step * len(names), tall * len(rows), shades)]
    if len(names) <= LABELLED:
        parts += numbers_in(matrix, left, top, (step, tall), shades)
    for j, name in enumerate(names):
        mark = marker(index[name], left + (j + 0.5) * step, top - 9, 4.2, tag("title", name))
        parts.append(tag("g", mark, class_=colour(index[name])))
    for i, row in enumerate(rows):
        parts.append(tag("text", row, class_="small", x=left - 8, y=top + (i + 0.5) * tall + 4, text_anchor="end"))
    means = [fmean(column) for column in zip(*matrix, strict=True)]
    label = f"{title}. Means: " + "; ".join(f"{n}: {shades.said(m)}" for n, m in zip(names, means, strict=True))
    return drawing(PANEL, top + tall * len(rows) + 10, label, parts)


# -- runs against runs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clustered:
    """All pairs of runs, each a (method, seed): matrix, order of the leaves, and the tree as scipy draws it."""

    runs: Sequence[tuple[str, int]]
    matrix: Rows
    order: Sequence[int]
    x: Rows
    height: Rows


def cluster_plot(results: Collected, title: str, clustered: Clustered, shades: Shades, wide: bool = True) -> Markup:
    """The matrix with like runs side by side, and the tree of their likeness at its left."""
    index = {m.name: m.index for m in results.methods}
    runs = [clustered.runs[i] for i in clustered.order]
    if not runs or any(method not in index for method, _ in runs):
        return NOTHING
    width, tree, labels = (1120.0, 190.0, 250.0) if wide else (360.0, 62.0, 24.0)
    side = min(width - tree - labels, 560.0, 44.0 * len(runs))
    tree += (width - tree - labels - side) / 2 if wide else 0
    top, step = 34.0, side / len(runs)
    matrix = [[clustered.matrix[i][j] if i != j else math.nan for j in clustered.order] for i in clustered.order]
    parts = [heading(title), *_tree(clustered, tree, top, step), *cells(matrix, tree, top, side, side, shades)]
    if step >= 30:
        parts += numbers_in(matrix, tree, top, (step, step), shades)
    parts += _leaves(runs, index, tree + side + 10, top, step, wide)
    words = "share of images" if wide else ""
    parts += shade_key(shades, tree, top + side + 10, side, words if shades.factor == 100 else "")
    ends = [f"{a} seed {i} and {b} seed {j}" for (a, i), (b, j) in [*pairwise(runs)][:3]]
    label = f"{title}, {len(runs)} runs ordered by likeness. Side by side stand, among others: {'; '.join(ends)}"
    return drawing(width, top + side + 40, label, parts, class_="wide" if wide else "narrow")


def _tree(clustered: Clustered, right: float, top: float, step: float) -> list[Markup]:
    """Leaves at `right`, the root at the left edge; a leaf stands at 10 i + 5 on scipy's scale."""
    highest = max((h for row in clustered.height for h in row), default=0.0) or 1.0
    reach = min(right - 4, 190.0)
    links = [
        path([(right - 4 - reach * h / highest, top + x / 10 * step) for x, h in zip(xs, heights, strict=True)])
        for xs, heights in zip(clustered.x, clustered.height, strict=True)
    ]
    return [tag("path", class_="tree", d="".join(links))]


def _leaves(
    runs: Sequence[tuple[str, int]], index: dict[str, int], x: float, top: float, step: float, wide: bool
) -> list[Markup]:
    """A mark for each run; beside them each method's name once for runs of it that stand together, with their seeds."""
    parts, start, last = [], 0, -math.inf
    for method, group in groupby(runs, key=lambda run: run[0]):
        seeds = [seed for _, seed in group]
        middle = top + (start + len(seeds) / 2) * step
        radius = min(4.2, 0.42 * step)
        marks = [marker(index[method], x, top + (start + i + 0.5) * step, radius) for i in range(len(seeds))]
        if wide and middle - last >= 12:
            said = f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, sorted(seeds)))}"
            text = tag(
                "text", f"{cut(method, 22)} ", tag("tspan", said, class_="tick"), x=x + 12, y=middle + 4, class_="small"
            )
            marks.append(text)
            last = middle
        parts.append(series(index[method], *marks))
        start += len(seeds)
    return parts
