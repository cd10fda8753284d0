"""How many images each class has, as bars from the largest class to the smallest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ..report.render.svg import Scale, drawing, line, tag
from ..report.render.words import cut

MOST_NAMES = 40  # bars with names; of more classes only the shape is seen


def class_plot(classes: Sequence[Mapping[str, Any]], parts: Sequence[str], wide: bool) -> Markup:
    """A bar for each class, its parts stacked; nothing where there are no classes or images."""
    total = {row["class"]: sum(row[part] for part in parts) for row in classes}
    if not total or not max(total.values()):
        return Markup("")
    order = sorted(classes, key=lambda row: -total[row["class"]])
    width, left, height = (1120.0, 52.0, 220.0) if wide else (360.0, 44.0, 180.0)
    named = len(order) <= (MOST_NAMES if wide else 14)
    y, slot = Scale(0, max(total.values()), height, 12), (width - left) / len(order)
    drawn = []
    for t in y.ticks(4):
        drawn.append(line(left, y(t), width, y(t), "grid"))
        drawn.append(tag("text", f"{t:,.0f}", class_="tick", x=left - 7, y=y(t) + 4, text_anchor="end"))
    turned = named and max(map(len, total)) * 7 > slot
    for i, row in enumerate(order):
        drawn += _bar(row, parts, left + i * slot, slot, y)
        if named:
            drawn.append(_name(row["class"], left + (i + 0.5) * slot, height + 18, slot, turned))
    floor = height + (84 if turned else 26 if named else 8)
    first, last = order[0]["class"], order[-1]["class"]
    label = f"Images of {len(order)} classes: from {total[first]:,} ({first}) to {total[last]:,} ({last})"
    return drawing(width, floor, label, drawn, class_="wide" if wide else "narrow")


def _bar(row: Mapping[str, Any], parts: Sequence[str], left: float, slot: float, y: Scale) -> list[Markup]:
    told = ", ".join(f"{row[part]:,} {part}" for part in parts)
    below, bars = 0, []
    for index, part in enumerate(parts, 1):
        top, base = y(below + row[part]), y(below)
        bar = tag(
            "rect", tag("title", f"{row['class']}: {told}"), class_=f"bar m{index}", x=left + 0.1 * slot, y=top,
            width=max(0.8 * slot, 0.5), height=base - top,
        )  # fmt: skip
        bars.append(bar)
        below += row[part]
    return bars


def _name(name: str, x: float, y: float, slot: float, turned: bool) -> Markup:
    place: dict[str, object] = {"x": x, "y": y, "text_anchor": "end" if turned else "middle"}
    if turned:
        place["transform"] = f"rotate(-40 {x:.1f} {y:.1f})"
    return tag(
        "text", cut(name, 13 if turned else max(4, math.floor(slot / 7))), tag("title", name), class_="tick", **place
    )
