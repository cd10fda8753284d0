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
MOST_POINTS = 250
GAP = 10.0


def plane_plot(method: Method, seen: Mapping[str, np.ndarray], epochs: Sequence[int]) -> Markup:
    """A square for each of the epochs, side by side."""
    panels = [_plane(seen, list(seen["epoch"]).index(epoch)) for epoch in epochs]
    side, parts = (PANEL - GAP * (len(panels) - 1)) / len(panels), []
    for i, (epoch, panel) in enumerate(zip(epochs, panels, strict=True)):
        left = i * (side + GAP)
        inner = tag("g", *panel, transform=f"scale({side / CELLS:.4f})")
        word = tag("text", f"epoch {epoch}", class_="tick", x=0, y=side + 15)
        parts.append(tag("g", inner, word, transform=f"translate({left:.1f} 24)"))
    label = f"Features of {method.name} in two dimensions and the regions of the classes, at epochs {list(epochs)}"
    return drawing(PANEL, 24 + side + 20, label, [heading(method.name), *parts])


def _plane(seen: Mapping[str, np.ndarray], at: int) -> list[Markup]:
    """Regions as runs of cells in rows, and the points over them, in units of cells."""
    points, labels = seen["points"][at].astype(float), seen["labels"][at]
    low, high = points.min(axis=0), points.max(axis=0)
    centre, reach = (low + high) / 2, max(*(high - low), 1e-9) * 0.55
    grid = centre + ((np.indices((CELLS, CELLS)).reshape(2, -1).T + 0.5) / CELLS * 2 - 1) * reach
    winner = (grid @ seen["plane_weight"][at].T + seen["plane_bias"][at]).argmax(axis=1).reshape(CELLS, CELLS)
    parts = []
    for column in range(CELLS):
        changes = [0, *(np.flatnonzero(np.diff(winner[column])) + 1), CELLS]
        for a, b in pairwise(changes):
            place = {"x": column, "y": CELLS - b, "width": 1.05, "height": b - a}
            parts.append(tag("rect", class_=f"region k{winner[column, a] % HUES + 1}", **place))
    every = max(1, len(points) // MOST_POINTS)
    spots = (points - centre) / reach * CELLS / 2 + CELLS / 2
    for (u, v), label in zip(spots[::every], labels[::every], strict=True):
        parts.append(tag("circle", class_=f"spot k{label % HUES + 1}", cx=float(u), cy=float(CELLS - v), r=0.55))
    return parts
