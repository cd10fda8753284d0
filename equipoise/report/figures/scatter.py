"""One number of each run against another: separation against transfer, say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from markupsafe import Markup

from ..collected import Collected
from ..render.svg import Scale, drawing, limits, marker, series, tag
from ..render.words import number
from ._parts import BOTTOM, LEFT, NOTHING, PANEL, RIGHT, TOP, back_to_front, heading, rules

Pairs = Mapping[str, Sequence[tuple[float, float]]]  # method -> (x, y) of each of its runs


def scatter_panel(results: Collected, title: str, words: str, pairs: Pairs, factor: float = 1.0) -> Markup:
    """A small dot for each run, a large mark for each method's mean; `words` name the horizontal axis."""
    shown = [m for m in back_to_front(results) if pairs.get(m.name)]
    if not shown:
        return NOTHING
    every = [p for m in shown for p in pairs[m.name]]
    x = Scale(*limits([p[0] for p in every]), LEFT + 4, RIGHT - 4)
    y = Scale(*limits([p[1] for p in every]), BOTTOM, TOP)
    parts = [heading(title), *rules(y, LEFT, RIGHT, factor)]
    parts += [tag("text", f"{t:g}", class_="tick", x=x(t), y=BOTTOM + 17, text_anchor="middle") for t in x.ticks(5)]
    parts.append(tag("text", words, class_="axis", x=(LEFT + RIGHT) / 2, y=BOTTOM + 36, text_anchor="middle"))
    means = {}
    for m in shown:
        own = pairs[m.name]
        means[m.name] = mean = tuple(fmean(column) for column in zip(*own, strict=True))
        dots = [tag("circle", class_="seed", cx=x(a), cy=y(b), r=2.2) for a, b in own]
        tip = tag("title", f"{m.name}: {number(mean[0], 3)}, {number(factor * mean[1], 1)}; n = {len(own)}")
        parts.append(series(m.index, *dots, marker(m.index, x(mean[0]), y(mean[1]), 5.0, tip)))
    label = f"{title} against {words}. " + "; ".join(
        f"{name}: {number(factor * b, 1)} at {number(a, 3)}" for name, (a, b) in means.items()
    )
    return drawing(PANEL, BOTTOM + 42, label, parts)
