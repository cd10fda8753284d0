"""Features in the plane and the regions of the classes, while a network with a planar head is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from ..collected import Method
from ..render.svg import drawing, tag
from ._parts import PANEL, heading

CELLS = 48  # of a side of the plane
HUES = 7  # page.css has so many; further classes take them again
MOST_POINTS = 250  # in a square, the classes sharing them alike, so that rare ones are seen
GAP, HEAD = 10.0, 24.0

Seen = Mapping[str, np.ndarray]


def plane_plot(method: Method, seen: Seen, epochs: Sequence[int], test: Seen | None = None) -> Markup:
    """A square for each of the epochs, side by side: training images, and in a second row the test images."""
    rows = {"training": seen} | ({"test": test} if test else {})
    title = f"{method.name}: training images" + (", and test images below" if test else "")
    side, parts = (PANEL - GAP * (len(epochs) - 1)) / len(epochs), [heading(title)]
    for column, epoch in enumerate(epochs):
        at = list(seen["epoch"]).index(epoch)
        frame = _frame([part["points"][at] for part in rows.values()])
        for row, part in enumerate(rows.values()):
            spots = _spots(part["points"][at], part["labels"][at], frame)
            inner = tag("g", *_regions(seen, frame, at), *spots, transform=f"scale({side / CELLS:.4f})")
            word = tag("text", f"epoch {epoch}", class_="tick", x=0, y=side + 15)
            place = f"translate({column * (side + GAP):.1f} {HEAD + row * (side + HEAD):.1f})"
            parts.append(tag("g", inner, word, transform=place))
    images = " and ".join(rows)
    label = (
        f"Features of {images} images of {method.name} in two dimensions and the regions of the classes, at epochs "
        f"{list(epochs)}"
    )
    return drawing(PANEL, HEAD + len(rows) * (side + HEAD) - 4, label, parts)


def _frame(points: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """The centre of a square that holds all points, and half of its side."""
    every = np.concatenate(points).astype(float)
    low, high = every.min(axis=0), every.max(axis=0)
    return (low + high) / 2, max(*(high - low), 1e-9) * 0.55


def _regions(seen: Seen, frame: tuple[np.ndarray, float], at: int) -> list[Markup]:
    """Which class wins where, as runs of cells in columns, in units of cells."""
    centre, reach = frame
    grid = centre + ((np.indices((CELLS, CELLS)).reshape(2, -1).T + 0.5) / CELLS * 2 - 1) * reach
    winner = (grid @ seen["plane_weight"][at].T + seen["plane_bias"][at]).argmax(axis=1).reshape(CELLS, CELLS)
    parts = []
    for column in range(CELLS):
        changes = [0, *(np.flatnonzero(np.diff(winner[column])) + 1), CELLS]
        for a, b in pairwise(changes):
            place = {"x": column, "y": CELLS - b, "width": 1.05, "height": b - a}
            parts.append(tag("rect", class_=f"region k{winner[column, a] % HUES + 1}", **place))
    return parts


def _spots(points: np.ndarray, labels: np.ndarray, frame: tuple[np.ndarray, float]) -> list[Markup]:
    """Points in units of cells, coloured by class, as many of each class."""
    centre, reach = frame
    classes = np.unique(labels)
    each = max(1, MOST_POINTS // len(classes))
    chosen = np.sort(np.concatenate([np.flatnonzero(labels == c)[:each] for c in classes]))
    places = (points[chosen] - centre) / reach * CELLS / 2 + CELLS / 2
    return [
        tag("circle", class_=f"spot k{label % HUES + 1}", cx=float(u), cy=float(CELLS - v), r=0.8)
        for (u, v), label in zip(places, labels[chosen], strict=True)
    ]
