"""Confusion: which class is taken for which, the largest class first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from ..collected import Collected, Method
from ..render.svg import drawing, series, tag
from ..render.words import cut, number
from ._parts import MANY_CLASSES, NOTHING, PANEL, heading, runs_of

GROUPS = 20  # of many classes, neighbours by size share a row and a column
LABELLED = 12  # with more rows than this a number has no room in its cell
SIDE = 296.0


def confusion_plot(results: Collected, method: Method) -> Markup:
    """A panel: rows are true classes, columns predicted ones, a cell the share of the row. Errors are in colour.

    A cell's strength is the square root of its share, so that an error of 1 % can be seen.
    """
    if not method.confusion:
        return NOTHING
    order = results.by_size
    groups = [[c] for c in order] if len(order) <= MANY_CLASSES else runs_of(order, GROUPS)
    shares = _shares(method, groups)
    side = SIDE / len(groups)
    names = [_name(results, group) for group in groups]
    what = "True class" if len(groups) == len(order) else "Classes of so many images"
    parts = [heading(f"{what} (rows) taken for (columns)")]
    cells = [_cell(row, column, share, side, names, len(groups) <= LABELLED) for (row, column), share in shares.items()]
    parts.append(tag("rect", class_="frame", x=PANEL - SIDE, y=40.0, width=SIDE, height=SIDE))
    parts += [series(method.index, *cells), *_names(names, side)]
    label = f"Confusion matrix of {method.name}, classes from the largest to the smallest. " + _worst_in_words(
        results, method
    )
    return drawing(PANEL, SIDE + 44, label, parts)


def _name(results: Collected, group: Sequence[int]) -> str:
    """A class by its name; neighbours by size by the numbers of their training images."""
    most, least = results.class_counts[group[0]], results.class_counts[group[-1]]
    if len(group) == 1:
        return results.class_names[group[0]]
    return f"{most}" if most == least else f"{most}–{least}"


def _shares(method: Method, groups: Sequence[Sequence[int]]) -> dict[tuple[int, int], float]:
    """The share of each row that fell into each column, where it is not 0."""
    place = {c: i for i, group in enumerate(groups) for c in group}
    counts: Counter[tuple[int, int]] = Counter()
    for (true, predicted), n in method.confusion.items():
        counts[place[true], place[predicted]] += n
    totals: Counter[int] = Counter()
    for (row, _), n in counts.items():
        totals[row] += n
    return {cell: n / totals[cell[0]] for cell, n in sorted(counts.items())}


def _cell(row: int, column: int, share: float, side: float, names: Sequence[str], labelled: bool) -> Markup:
    x, y = PANEL - SIDE + column * side, 40 + row * side
    kind = "right" if row == column else "wrong"
    box = {"x": x + 0.5, "y": y + 0.5, "width": side - 1, "height": side - 1}
    if not labelled:
        return tag("rect", class_=f"cell {kind}", fill_opacity=math.sqrt(share), **box)
    tip = tag("title", f"{names[row]} taken for {names[column]}: {number(100 * share)} %")
    drawn = tag("rect", tip, class_=f"cell {kind}", fill_opacity=math.sqrt(share), **box)
    if share < 0.005:
        return drawn
    strong = " strong" if math.sqrt(share) > 0.6 else ""
    at = {"x": x + side / 2, "y": y + side / 2 + 4, "text_anchor": "middle"}
    return drawn + tag("text", number(100 * share, 0), class_=f"share {kind}{strong}", **at)


def _names(names: Sequence[str], side: float) -> list[Markup]:
    """Along the left edge as many as there is room for, along the upper one if all fit."""
    every, left = math.ceil(13 / side), PANEL - SIDE
    middles = [(i + 0.5) * side for i in range(len(names))]
    parts = [
        tag("text", cut(name, 10), tag("title", name), class_="tick", x=left - 6, y=44 + middle, text_anchor="end")
        for name, middle in list(zip(names, middles, strict=True))[::every]
    ]
    if max(map(len, names)) * 7 < side:
        parts += [
            tag("text", name, class_="tick", x=left + middle, y=34, text_anchor="middle")
            for name, middle in zip(names, middles, strict=True)
        ]
    return parts


def worst_confusions(results: Collected, method: Method, most: int = 5) -> list[tuple[str, str, float, int]]:
    """(true class, predicted class, share of the true class, samples over all runs), the largest shares first."""
    names = results.class_names
    return [(names[true], names[other], share, n) for share, n, true, other in worst_pairs(method, most)]


def worst_pairs(method: Method, most: int) -> list[tuple[float, int, int, int]]:
    """(share of the true class, samples over all runs, true class, predicted class), the largest shares first."""
    totals: Counter[int] = Counter()
    for (true, _), n in method.confusion.items():
        totals[true] += n
    errors = [(n / totals[t], n, t, p) for (t, p), n in method.confusion.items() if t != p]
    return sorted(errors, key=lambda e: (-e[0], -e[1], e[2], e[3]))[:most]


def _worst_in_words(results: Collected, method: Method) -> str:
    worst = worst_confusions(results, method)
    said = "; ".join(f"{true} taken for {wrong} in {number(100 * share)} %" for true, wrong, share, _ in worst)
    return f"Most often: {said}" if worst else "No sample was taken for another class"
