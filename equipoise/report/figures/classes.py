"""Accuracy class by class: against the size of the classes, side by side, and as the bars of one method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from markupsafe import Markup

from ..collected import Collected, Estimate, Method
from ..render.svg import Scale, drawing, line, marker, path, series, tag
from ..render.words import cut, number
from ._parts import BOTTOM, LEFT, MANY_CLASSES, NOTHING, PANEL, RIGHT, TOP, back_to_front, heading, rules, runs_of, said

GROUPS = 10  # of many classes, neighbours by size are drawn as so many means
BARS = 20


def size_plot(results: Collected, wide: bool = True) -> Markup:
    """Accuracy of the classes against their numbers of training images, on a logarithmic scale.

    A dot is a class. A line joins the means of classes of one size; of many sizes, of `GROUPS` runs of neighbours.
    """
    shown = _with_classes(results)
    sizes = [max(count, 1) for count in results.class_counts]
    if not shown or len(set(sizes)) < 2:
        return NOTHING
    width, left, height = (1120.0, 44.0, 280.0) if wide else (360.0, 34.0, 250.0)
    y = Scale(_floor(e for m in shown for e in m.per_class), 1.0, height, 12)
    x = Scale(min(sizes) / 1.12, max(sizes) * 1.12, width - 8, left, log=True)  # from large to small, as everywhere
    parts = rules(y, left, width, factor=100)
    for t in x.ticks(7 if wide else 4):
        parts.append(line(x(t), height, x(t), height + 5, "rule"))
        parts.append(tag("text", f"{t:,.0f}", class_="tick", x=x(t), y=height + 19, text_anchor="middle"))
    words = "Training images of the class (logarithmic, fewer to the right)" if wide else "Training images of the class"
    parts.append(tag("text", words, class_="axis", x=(left + width) / 2, y=height + 40, text_anchor="middle"))
    groups = _groups(results.by_size, sizes)
    parts += [_size_series(m, results.class_names, sizes, groups, x, y) for m in shown]
    label = (
        f"Accuracy of each method on {len(sizes)} classes against their training images, "
        f"from {max(sizes):,} to {min(sizes):,}. "
    ) + "; ".join(_ends(m, groups) for m in reversed(shown))
    return drawing(width, height + 46, label, parts, class_="wide" if wide else "narrow")


def _groups(order: Sequence[int], sizes: Sequence[int]) -> list[Sequence[int]]:
    """Classes of one size together, while those groups are few; else runs of neighbours."""
    if len({sizes[c] for c in order}) <= MANY_CLASSES:
        return [[c for c in order if sizes[c] == size] for size in dict.fromkeys(sizes[c] for c in order)]
    return runs_of(order, GROUPS)


def _ends(method: Method, groups: list[Sequence[int]]) -> str:
    first, last = (number(100 * _mean(method, g), 0) for g in (groups[0], groups[-1]))
    return f"{method.name}: {first} % on the largest, {last} % on the smallest"


def _mean(method: Method, classes: Iterable[int]) -> float:
    known = [method.per_class[c].mean for c in classes if method.per_class[c].n]
    return fmean(known) if known else math.nan


def _size_series(
    method: Method, names: Sequence[str], sizes: Sequence[int], groups: list[Sequence[int]], x: Scale, y: Scale
) -> Markup:
    centre = [math.exp(fmean(math.log(sizes[c]) for c in group)) for group in groups]
    drawn = [
        tag("path", class_="line", d=path((x(s), y(_mean(method, g))) for s, g in zip(centre, groups, strict=True)))
    ]
    for c, e in enumerate(method.per_class):
        if e.n and len(names) <= MANY_CLASSES:
            tip = tag("title", f"{method.name}, {names[c]} ({sizes[c]} images): {said(e, 'accuracy')}")
            drawn.append(marker(method.index, x(sizes[c]), y(e.mean), 3.4, tip))
        elif e.n:
            drawn.append(tag("circle", class_="seed faint", cx=x(sizes[c]), cy=y(e.mean), r=1.6))
    return series(method.index, *drawn)


def class_plot(results: Collected, wide: bool = True) -> Markup:
    """Accuracy of each method on each class with its interval, from the largest class to the smallest.

    Of more than `MANY_CLASSES` there is nothing to be seen so, and `size_plot` stands alone.
    """
    shown = _with_classes(results)
    if not shown or len(results.class_names) > MANY_CLASSES:
        return NOTHING
    width, left, height, most = (1120.0, 44.0, 300.0, 36) if wide else (360.0, 34.0, 250.0, 14)
    order = results.by_size
    slot = (width - left) / len(order)
    y = Scale(_floor(e for m in shown for e in m.per_class), 1.0, height, 8)
    parts = [
        tag("rect", class_="stripe", x=left + i * slot, y=8, width=slot, height=height - 8)
        for i in range(0, len(order), 2)
    ]
    parts += rules(y, left, width, factor=100)
    for place, method in enumerate(shown):
        # methods stand side by side inside a class, or their intervals would hide each other
        aside = ((len(shown) - 1) / 2 - place) * min(0.7 / len(shown), 0.12) * slot
        at = [left + (i + 0.5) * slot + aside for i in range(len(order))]
        parts.append(_class_series(method, at, order, results.class_names, y))
    every = math.ceil(len(order) / most)
    turned = max(map(len, results.class_names)) * 7 > slot * every
    floor = height + (118 if turned else 86)
    parts += _class_axis(results, order, Scale(0, len(order), left, width), height, floor, every, turned)
    label = f"Accuracy of each method on each of {len(order)} classes, ordered by their number of training images"
    return drawing(width, floor + 2, label, parts, class_="wide" if wide else "narrow")


def _with_classes(results: Collected) -> list[Method]:
    return [m for m in back_to_front(results) if any(e.n for e in m.per_class)]


def _floor(estimates: Iterable[Estimate]) -> float:
    """The axis starts at the fifth below the lowest interval, so that neither room nor an interval is lost."""
    lowest = min(min(e.low, e.mean) if math.isfinite(e.low) else e.mean for e in estimates if e.n)
    return max(0.0, math.floor(min(lowest, 0.9) * 5) / 5)


def _class_series(method: Method, at: list[float], order: list[int], names: tuple[str, ...], y: Scale) -> Markup:
    points = [(x, names[c], method.per_class[c]) for x, c in zip(at, order, strict=True)]
    drawn = [tag("path", class_="whisker", d="".join(path([(x, y(e.low)), (x, y(e.high))]) for x, _, e in points))]
    drawn += [
        marker(method.index, x, y(e.mean), 3.2, tag("title", f"{method.name}, {name}: {said(e, 'accuracy')}"))
        for x, name, e in points
        if e.n
    ]
    return series(method.index, *drawn)


def _class_axis(
    results: Collected, order: list[int], x: Scale, top: float, floor: float, every: int, turned: bool
) -> list[Markup]:
    """Names under the slots, and below them bars as tall as the classes are large."""
    slot = x(1) - x(0)
    parts = []
    for i, c in enumerate(order):
        name, count, at = results.class_names[c], results.class_counts[c], x(i + 0.5)
        tall = 34 * count / max(*results.class_counts, 1)
        tip = tag("title", f"{name}: {count} training images")
        parts.append(tag("rect", tip, class_="size", x=at - slot / 3, y=floor - tall, width=slot / 1.5, height=tall))
        if i % every:
            continue
        place: dict[str, object] = {"x": at, "y": top + 18, "text_anchor": "end" if turned else "middle"}
        if turned:
            place["transform"] = f"rotate(-40 {at:.1f} {top + 18:.1f})"
        parts.append(tag("text", cut(name, 11 if turned else 14), tag("title", name), class_="tick", **place))
        if slot * every > 24:
            parts.append(tag("text", count, class_="count", x=at, y=floor - tall - 4, text_anchor="middle"))
    return parts


def class_bars(results: Collected, method: Method) -> Markup:
    """A panel of one method's accuracy on each class, largest first, with a tick where the baseline stands.

    Of more than `MANY_CLASSES`, a bar is the mean of neighbours by size.
    """
    if not any(e.n for e in method.per_class):
        return NOTHING
    order = results.by_size
    groups = [[c] for c in order] if len(order) <= MANY_CLASSES else runs_of(order, BARS)
    y, slot = Scale(0.0, 1.0, BOTTOM, TOP), (RIGHT - LEFT) / len(groups)
    parts = [heading("Accuracy of each class, %"), *rules(y, LEFT, RIGHT, factor=100)]
    parts.append(
        series(method.index, *(_bar(results, method, g, LEFT + i * slot, slot, y) for i, g in enumerate(groups)))
    )
    if not method.is_baseline and any(e.n for e in results.reference.per_class):
        heights = [y(_mean(results.reference, g)) for g in groups]
        ticks = (path([(LEFT + (i + 0.1) * slot, h), (LEFT + (i + 0.9) * slot, h)]) for i, h in enumerate(heights))
        parts.append(tag("path", tag("title", results.baseline), class_="reference", d="".join(ticks)))
    parts += _bar_names(results, groups, slot)
    label = f"Accuracy of {method.name} on each class, largest class first: " + "; ".join(
        f"{results.class_names[g[0]]} {number(100 * _mean(method, g), 0)} %" for g in groups
    )
    return drawing(PANEL, BOTTOM + 40, label, parts)


def _bar(results: Collected, method: Method, group: Sequence[int], left: float, slot: float, y: Scale) -> Markup:
    share = _mean(method, group)
    if not math.isfinite(share):
        return NOTHING
    one = method.per_class[group[0]]
    what = f"{results.class_names[group[0]]}: {said(one, 'accuracy')}"
    if len(group) > 1:
        what = f"{len(group)} classes from {results.class_names[group[0]]} on: {number(100 * share)} %"
    box = {"x": left + 0.14 * slot, "y": y(share), "width": 0.72 * slot, "height": BOTTOM - y(share)}
    drawn = tag("rect", tag("title", what), class_="bar", **box)
    if len(group) > 1 or not math.isfinite(one.low):
        return drawn
    at = left + slot / 2
    return drawn + tag("path", class_="whisker dark", d=path([(at, y(one.low)), (at, y(one.high))]))


def _bar_names(results: Collected, groups: Sequence[Sequence[int]], slot: float) -> list[Markup]:
    """Names where they fit; else what the ends of the axis are."""
    names = [results.class_names[g[0]] for g in groups]
    largest, smallest = (results.class_counts[g[place]] for g, place in ((groups[0], 0), (groups[-1], -1)))
    parts = [
        tag("text", f"{largest:,} training images", class_="tick", x=LEFT, y=BOTTOM + 34),
        tag("text", f"{smallest:,}", class_="tick", x=RIGHT, y=BOTTOM + 34, text_anchor="end"),
    ]
    if max(map(len, names)) * 6.8 < slot:
        at = (LEFT + (i + 0.5) * slot for i in range(len(groups)))
        parts += [
            tag("text", name, class_="tick", x=x, y=BOTTOM + 16, text_anchor="middle")
            for x, name in zip(at, names, strict=True)
        ]
    return parts
