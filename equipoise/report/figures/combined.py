"""Several data sets in one drawing: mean effects with their spread, one method's data sets, and ranks."""

from __future__ import annotations

import math

from markupsafe import Markup

from ...analysis.statistics.combined import Combined, CombinedMethod, Effect
from ..render.svg import Scale, decimals, drawing, limits, line, marker, series, tag
from ..render.words import cut, interval, is_share, number, value
from ._parts import NOTHING, PANEL, bar, difference_axis, heading

ROW, NARROW_ROW = 34.0, 50.0


def looks(combined: Combined) -> dict[str, int]:
    """The index of each method's colour and mark: 0 the baseline, the others in the order of their effects."""
    others = [method.name for method in combined.methods if method.name != combined.baseline]
    return {combined.baseline: 0, **{name: place for place, name in enumerate(others, start=1)}}


def effect_plot(combined: Combined, wide: bool = True) -> Markup:
    """Each method's mean difference to the baseline: its interval, that of a further data set, a dot for each one."""
    shown = [method for method in combined.methods if method.effects]
    if not shown:
        return NOTHING
    width, left, right, row = (1120.0, 214.0, 196.0, ROW) if wide else (360.0, 12.0, 12.0, NARROW_ROW)
    dots = [0.0, *(effect.mean for method in shown for effect in method.effects)]
    ends = (end for m in shown for end in (m.low, m.high, m.next_low, m.next_high))
    x = Scale(*limits(dots, ends), left, width - right)
    bottom = 6 + row * len(shown)
    parts = [
        _effect_row(method, looks(combined)[method.name], combined.metric, x, 6 + row * place, width, wide)
        for place, method in enumerate(shown)
    ]
    tracks = [(6.0, bottom)] if wide else [(6 + row * i + 18, 6 + row * i + 44) for i in range(len(shown))]
    label = f"Mean difference of each method to {combined.baseline} over data sets, with 95 % intervals. " + "; ".join(
        f"{method.name}: {effect_words(method, combined.metric)}" for method in shown
    )
    axis = difference_axis(combined.metric, combined.baseline, combined.higher_is_better, x, tracks, bottom, wide)
    return drawing(width, bottom + 44, label, [*axis, *parts], class_="wide" if wide else "narrow")


def effect_words(method: CombinedMethod, metric: str) -> str:
    """`+1.2 [+0.3, +2.1] (5)`; the number is of data sets."""
    ends = interval(method.low, method.high, metric, sign=True)
    return f"{value(method.mean, metric, sign=True)} {ends} ({len(method.effects)})"


def _effect_row(
    method: CombinedMethod, index: int, metric: str, x: Scale, y: float, width: float, wide: bool
) -> Markup:
    label, middle, left = (y + 14, y + 13, 6.0) if wide else (y + 8, y + 29, 6.0)
    words = effect_words(method, metric)
    parts = [
        marker(index, left, label, 4.5),
        _name(method.name, left + 12, label + 4.5, 25 if wide else 17),
        tag("text", words, class_="value", x=width, y=label + 4.5, text_anchor="end"),
    ]
    if math.isfinite(method.next_low):
        parts.append(tag("path", class_="whisker", d=f"M{x(method.next_low):.2f},{middle}H{x(method.next_high):.2f}"))
    parts.append(bar(x, method.low, method.high, middle))
    for effect in method.effects:
        tip = tag("title", f"{method.name}, {effect.data}: {value(effect.mean, metric, sign=True)}")
        parts.append(tag("circle", tip, class_="seed", cx=x(effect.mean), cy=middle + 11, r=2.4))
    return series(index, *parts, marker(index, x(method.mean), middle, 5, tag("title", f"{method.name}: {words}")))


def forest_plot(combined: Combined, method: CombinedMethod) -> Markup:
    """A panel: one method's difference to the baseline on every data set, 95 % intervals over seeds, and the mean."""
    if not method.effects:
        return NOTHING
    rows = [*method.effects, _mean_of(method)]
    x = Scale(
        *limits([0.0, *(r.mean for r in rows)], (end for r in rows for end in (r.low, r.high))), 160.0, PANEL - 46
    )
    bottom, index = 34 + 26.0 * len(rows), looks(combined)[method.name]
    factor = 100 if is_share(combined.metric) else 1
    ticks = x.ticks(4)
    digits = decimals([factor * t for t in ticks])
    parts = [heading(method.name)]
    for t in ticks:
        parts.append(line(x(t), 28, x(t), bottom, "grid" if t else "zero"))
        text = number(factor * t, digits, sign=t != 0)
        parts.append(tag("text", text, class_="tick", x=x(t), y=bottom + 16, text_anchor="middle"))
    parts.append(line(0, bottom - 24, PANEL, bottom - 24, "rule"))
    parts += [_forest_row(row, index, method, combined.metric, x, 40 + 26.0 * place) for place, row in enumerate(rows)]
    label = f"Difference of {method.name} to {combined.baseline} on each data set. " + "; ".join(
        f"{r.data}: {value(r.mean, combined.metric, sign=True)} {interval(r.low, r.high, combined.metric, sign=True)}"
        for r in rows
    )
    return drawing(PANEL, bottom + 24, label, parts, class_="rows")


def _mean_of(method: CombinedMethod) -> Effect:
    return Effect("mean", len(method.effects), method.mean, method.low, method.high, math.nan)


def _forest_row(row: Effect, index: int, method: CombinedMethod, metric: str, x: Scale, y: float) -> Markup:
    words = f"{value(row.mean, metric, sign=True)} {interval(row.low, row.high, metric, sign=True)}, n = {row.n}"
    name = f"{row.data} (against)" if row.data in method.against else row.data
    return series(
        index,
        _name(name, 0, y + 4, 25, "name small"),
        tag("text", value(row.mean, metric, sign=True), class_="value", x=PANEL, y=y + 4, text_anchor="end"),
        bar(x, row.low, row.high, y),
        marker(index, x(row.mean), y, 4.2, tag("title", f"{row.data}: {words}")),
    )


def rank_plot(combined: Combined, wide: bool = True) -> Markup:
    """Each method's mean rank over data sets, best at the top, and a dot for its rank on each of them."""
    shown = sorted((method for method in combined.methods if method.ranks), key=lambda method: method.rank)
    if len(shown) < 2:
        return NOTHING
    width, left, right, row = (1120.0, 214.0, 196.0, ROW) if wide else (360.0, 12.0, 12.0, NARROW_ROW)
    x = Scale(1.0, float(len(shown)), left + 8, width - right - 8)
    bottom = 6 + row * len(shown)
    parts = []
    for rank in range(1, len(shown) + 1):
        parts.append(line(x(rank), 6, x(rank), bottom, "grid"))
        parts.append(tag("text", str(rank), class_="tick", x=x(rank), y=bottom + 17, text_anchor="middle"))
    parts += [
        _rank_row(method, looks(combined)[method.name], x, 6 + row * place, width, wide)
        for place, method in enumerate(shown)
    ]
    axis = tag(
        "text", "Rank, 1 is the best", class_="axis", x=(x.start + x.end) / 2, y=bottom + 37, text_anchor="middle"
    )
    label = "Mean rank of each method. " + "; ".join(f"{m.name}: {number(m.rank, 1)}" for m in shown)
    return drawing(width, bottom + 44, label, [*parts, axis], class_="wide" if wide else "narrow")


def _rank_row(method: CombinedMethod, index: int, x: Scale, y: float, width: float, wide: bool) -> Markup:
    label, middle = (y + 14, y + 13) if wide else (y + 8, y + 29)
    dots = []
    for rank in sorted(set(method.ranks.values())):
        data = [name for name, of_data in method.ranks.items() if of_data == rank]
        tip = tag("title", f"{method.name}, rank {rank:g}: {'; '.join(data)}")
        size = 2.4 * math.sqrt(len(data))  # the area tells how many data sets
        dots.append(tag("circle", tip, class_="seed", cx=x(rank), cy=middle + 10, r=min(size, 6.0)))
    return series(
        index,
        marker(index, 6.0, label, 4.5),
        _name(method.name, 18, label + 4.5, 25 if wide else 30),
        tag("text", number(method.rank, 1), class_="value", x=width, y=label + 4.5, text_anchor="end"),
        *dots,
        marker(index, x(method.rank), middle, 5, tag("title", f"{method.name}: mean rank {number(method.rank, 2)}")),
    )


def _name(text: str, x: float, y: float, length: int, style: str = "name") -> Markup:
    return tag("text", cut(text, length), tag("title", text), class_=style, x=x, y=y)
