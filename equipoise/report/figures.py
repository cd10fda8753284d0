"""The three drawings of a report, as inline SVG: intervals, accuracy of each class, training curves.

Colours are classes that page.css resolves, so that one drawing serves light and dark. A method has the same colour
and shape everywhere; the baseline is grey. Text keeps its size on a telephone because the first two are made twice,
`wide` and narrow, and the page shows the one that fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup

from .collect import Estimate, Method, Results
from .svg import Scale, decimals, drawing, limits, line, marker, path, series, tag
from .words import cut, interval, is_share, number, title_of, value

MANY_CLASSES = 40  # from here on classes have no room for dots, intervals and names of their own
NOTHING = Markup("")


def interval_plot(results: Results, wide: bool = True) -> Markup:
    """Each method's difference to the baseline: mean, 95 % interval, and one small dot for each seed."""
    shown = [m for m in results.methods if m.result.tier is not None]
    if not any(m.differences for m in shown):
        return NOTHING
    width, left, right, row, top = (1120.0, 236.0, 226.0, 34.0, 8.0) if wide else (360.0, 12.0, 12.0, 50.0, 4.0)
    x = Scale(*_difference_limits(shown), left, width - right)
    parts, tracks, y, tier = [], [], top, 0
    for method in shown:
        if method.result.tier != tier:
            tier = method.result.tier or 0
            parts += [line(0, y, width, y, "rule"), tag("text", f"Tier {tier}", class_="tier", x=0, y=y + 17)]
            y += 24
        parts.append(_interval_row(method, results.metric, x, y, width, wide))
        tracks.append((y + 18, y + 44))
        y += row
    parts.append(line(0, y, width, y, "rule"))
    # on a narrow drawing names stand above the intervals, where lines from top to bottom would cross them
    axis = _difference_axis(results, x, [(top, y)] if wide else tracks, y, wide)
    label = f"Difference of each method to {results.baseline} with 95 % intervals (pairs). " + "; ".join(
        f"{m.name}: {_difference(m, results.metric)}" for m in shown if not m.is_baseline
    )
    return drawing(width, y + 46, label, [*axis, *parts], class_="wide" if wide else "narrow")


def _difference_limits(shown: list[Method]) -> tuple[float, float]:
    centres = [0.0, *(d for m in shown for _, d in m.differences)]
    return limits(centres, (end for m in shown for end in (m.result.diff_low, m.result.diff_high)))


def _difference_axis(
    results: Results, x: Scale, tracks: list[tuple[float, float]], bottom: float, wide: bool
) -> list[Markup]:
    """The zero line and the grid over the `tracks` (from, to), values and words below."""
    factor = 100 if is_share(results.metric) else 1
    ticks = x.ticks(6 if wide else 4)
    digits = decimals([factor * t for t in ticks])
    parts = []
    for t in ticks:
        text = number(factor * t, digits, sign=t != 0)
        parts.append(tag("text", text, class_="tick", x=x(t), y=bottom + 17, text_anchor="middle"))
        parts += [line(x(t), start, x(t), end, "grid" if t else "zero") for start, end in tracks]
    what = f"{title_of(results.metric)}: difference to {results.baseline}" if wide else "Difference to the baseline"
    unit = "points" if factor == 100 else "nats"
    better = "right" if results.verdict.higher_is_better else "left"
    words, middle = f"{what} in {unit} ({better} is better)", (x.start + x.end) / 2
    return [*parts, tag("text", words, class_="axis", x=middle, y=bottom + 38, text_anchor="middle")]


def _interval_row(method: Method, metric: str, x: Scale, y: float, width: float, wide: bool) -> Markup:
    result = method.result
    label, middle = (y + 12, y + 12) if wide else (y + 8, y + 29)
    words = "baseline" if method.is_baseline else _difference(method, metric)
    name = cut(method.name, 30 if wide else 19)
    parts = [
        marker(method.index, 6, label, 4.5),
        tag("text", name, tag("title", method.name), class_="name", x=18, y=label + 4.5),
        tag("text", words, class_="value", x=width, y=label + 4.5, text_anchor="end"),
    ]
    if method.is_baseline:
        return series(0, *parts, marker(0, x(0), middle, 5))
    parts.append(_bar(x, result.diff_low, result.diff_high, middle))
    for seed, difference in method.differences:
        tip = tag("title", f"{method.name}, seed {seed}: {value(difference, metric, sign=True)}")
        parts.append(tag("circle", tip, class_="seed", cx=x(difference), cy=middle + 11, r=2.2))
    if math.isfinite(result.difference):
        tip = tag("title", f"{method.name}: {words}")
        parts.append(marker(method.index, x(result.difference), middle, 5, tip))
    return series(method.index, *parts)


def _difference(method: Method, metric: str) -> str:
    result = method.result
    if not math.isfinite(result.difference):
        return "no pair with the baseline"
    ends = interval(result.diff_low, result.diff_high, metric, sign=True)
    return f"{value(result.difference, metric, sign=True)} {ends} ({result.n_pairs})"


def _bar(x: Scale, low: float, high: float, y: float) -> Markup:
    """An interval; where it leaves the drawing it ends in an arrow instead of a cap."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return NOTHING
    ends = []
    for end, inward, outside in ((low, 1, low < x.low), (high, -1, high > x.high)):
        back = 5 * inward if outside else 0
        ends.append(path([(x(end) + back, y - 4), (x(end), y), (x(end) + back, y + 4)]))
    return tag("path", class_="range", d=path([(x(low), y), (x(high), y)]) + "".join(ends))


def class_plot(results: Results, wide: bool = True) -> Markup:
    """Accuracy of each method on each class, from the largest class to the smallest, above the class sizes."""
    shown = [m for m in _back_to_front(results) if any(e.n for e in m.per_class)]
    if not shown:
        return NOTHING
    width, left, height, most = (1120.0, 44.0, 300.0, 36) if wide else (360.0, 34.0, 250.0, 14)
    order = sorted(range(len(results.class_names)), key=lambda c: (-results.class_counts[c], c))
    slot = (width - left) / len(order)
    y = Scale(_floor(e for m in shown for e in m.per_class), 1.0, height, 8)
    parts = _rows(y, left, width, factor=100)
    crowded = len(order) > MANY_CLASSES
    for place, method in enumerate(shown):
        # methods stand side by side inside a class, or their intervals would hide each other
        aside = 0.0 if crowded else ((len(shown) - 1) / 2 - place) * min(0.7 / len(shown), 0.12) * slot
        at = [left + (i + 0.5) * slot + aside for i in range(len(order))]
        parts.append(_class_series(method, at, order, results.class_names, y, crowded))
    every = math.ceil(len(order) / most)
    turned = max(map(len, results.class_names)) * 7 > slot * every
    floor = height + (118 if turned else 86)
    parts += _class_axis(results, order, Scale(0, len(order), left, width), height, floor, every, turned)
    label = f"Accuracy of each method on each of {len(order)} classes, ordered by their number of training images"
    return drawing(width, floor + 2, label, parts, class_="wide" if wide else "narrow")


def _floor(estimates: Iterable[Estimate]) -> float:
    """The axis starts at the fifth below the lowest interval, so that neither room nor an interval is lost."""
    lowest = min(min(e.low, e.mean) if math.isfinite(e.low) else e.mean for e in estimates if e.n)
    return max(0.0, math.floor(min(lowest, 0.9) * 5) / 5)


def _class_series(
    method: Method, at: list[float], order: list[int], names: tuple[str, ...], y: Scale, crowded: bool
) -> Markup:
    points = [(x, names[c], method.per_class[c]) for x, c in zip(at, order, strict=True)]
    drawn = [tag("path", class_="line thin", d=path((x, y(e.mean)) for x, _, e in points))]
    if not crowded:
        whiskers = (path([(x, y(e.low)), (x, y(e.high))]) for x, _, e in points)
        drawn.append(tag("path", class_="whisker", d="".join(whiskers)))
        drawn += [
            marker(method.index, x, y(e.mean), 3.2, tag("title", f"{method.name}, {name}: {_words(e, 'accuracy')}"))
            for x, name, e in points
            if e.n
        ]
    return series(method.index, *drawn)


def _class_axis(
    results: Results, order: list[int], x: Scale, top: float, floor: float, every: int, turned: bool
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


def curve_plot(results: Results, name: str) -> Markup:
    """One curve of every method over the epochs: mean over the finished runs, with the band of its 95 % interval."""
    shown = [m for m in _back_to_front(results) if any(e.n for e in m.curves.get(name, ()))]
    if not shown:
        return NOTHING
    width, left, right, height = 372.0, 38.0, 364.0, 208.0
    y = _curve_scale(name, [e for m in shown for e in m.curves[name] if e.n], height)
    epochs = max(len(m.curves[name]) for m in shown)
    x = Scale(1, max(epochs, 2), left, right)
    title = title_of(name) + (", %" if is_share(name) else ", log scale" if y.log else "")
    parts = [tag("text", title, class_="panel", x=0, y=14)]
    parts += _rows(y, left, right, factor=100 if is_share(name) else 1)
    parts += [
        tag("text", f"{t:g}", class_="tick", x=x(t), y=height + 17, text_anchor="middle")
        for t in x.ticks(5)
        if t == int(t) and t < 0.74 * epochs
    ]
    parts.append(tag("text", f"epoch {epochs}", class_="tick", x=right, y=height + 17, text_anchor="end"))
    parts += [_curve_series(m, name, x, y) for m in shown]
    label = f"{title_of(name)} of each method over {epochs} epochs, mean of the finished runs with 95 % intervals"
    return drawing(width, height + 24, label, parts)


def _curve_scale(name: str, known: list[Estimate], height: float) -> Scale:
    """Losses of unlike methods may differ a hundredfold; a logarithmic scale then shows them all."""
    means = [e.mean for e in known]
    low, high = limits(means, (end for e in known for end in (e.low, e.high)), reach=0.25)
    if is_share(name):
        return Scale(max(low, 0.0), min(high, 1.0), height, 30)
    if min(means) > 0 and max(means) > 30 * min(means):
        return Scale(min(means) / 1.2, max(means) * 1.2, height, 30, log=True)
    return Scale(low, high, height, 30)


def _curve_series(method: Method, name: str, x: Scale, y: Scale) -> Markup:
    curve = method.curves[name]
    centre = path((x(i + 1), y(e.mean)) for i, e in enumerate(curve))
    known = [(x(i + 1), e) for i, e in enumerate(curve) if math.isfinite(e.low)]
    edge = path([(at, y(e.low)) for at, e in known] + [(at, y(e.high)) for at, e in reversed(known)])
    band = tag("path", class_="band", d=f"{edge}Z") if edge else NOTHING
    epoch, last = next((i, e) for i, e in reversed(list(enumerate(curve, start=1))) if e.n)
    tip = tag("title", f"{method.name}: {_words(last, name)} at epoch {epoch}")
    # a wide invisible line on top is easier to point at
    return series(method.index, band, tag("path", class_="line", d=centre), tag("path", tip, class_="target", d=centre))


def _rows(y: Scale, left: float, right: float, factor: float) -> list[Markup]:
    """Horizontal rules with their values."""
    ticks = y.ticks(5)
    digits = decimals([factor * t for t in ticks])
    parts = []
    for t in ticks:
        text = f"{t:g}" if y.log else number(factor * t, digits)
        parts.append(line(left, y(t), right, y(t), "grid"))
        parts.append(tag("text", text, class_="tick", x=left - 7, y=y(t) + 4, text_anchor="end"))
    return parts


def _back_to_front(results: Results) -> list[Method]:
    """The best method is drawn last, on top."""
    return sorted(results.methods, key=lambda m: -m.rank)


def _words(e: Estimate, name: str) -> str:
    return f"{value(e.mean, name)} {interval(e.low, e.high, name)}, n = {e.n}"
