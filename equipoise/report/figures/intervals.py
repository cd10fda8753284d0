"""Intervals, a row for each method: its difference to the baseline, or its own value of one metric."""

from __future__ import annotations

import math

from markupsafe import Markup

from ...analysis.statistics.priority import ALL_METRICS
from ..collected import Collected, Method
from ..render.svg import Scale, decimals, drawing, limits, line, marker, series, tag
from ..render.words import cut, interval, is_share, number, title_of, value
from ._parts import NOTHING, PANEL, band, bar, difference_axis, heading

MOST_ROWS = 12  # so many fit on the first screen with the question and the answer


def interval_plot(results: Collected, wide: bool = True, most: int | None = None) -> Markup:
    """Each method's difference to the baseline: mean, 95 % interval, and one small dot for each seed.

    Behind the interval lies a pale band, the interval for new images, where that is known.

    Of more than `most` methods only the best are drawn, and the baseline.
    """
    shown = _best([m for m in results.methods if m.result.tier is not None], most)
    if not any(m.differences for m in shown):
        return NOTHING
    width, left, right, row = (1120.0, 262.0, 196.0, min(36.0, 12 * 28 / len(shown)))
    if not wide:
        width, left, right, row = 360.0, 12.0, 12.0, 50.0
    row = max(row, 28.0)
    x = Scale(*_difference_limits(shown), left, width - right)
    parts, tracks, y, tier = [], [], 6.0, 0
    for method in shown:
        if method.result.tier != tier:
            tier = method.result.tier or 0
            parts.append(_tier(tier, y, width, row, wide))
            y += 0 if wide else 22
        parts.append(_difference_row(method, results.metric, x, y, width, row, wide))
        tracks.append((y + 18, y + 44))
        y += row
    parts.append(line(0, y, width, y, "rule"))
    # on a narrow drawing names stand above the intervals, where lines from top to bottom would cross them
    along, is_right_better = [(6.0, y)] if wide else tracks, results.verdict.higher_is_better
    axis = difference_axis(results.metric, results.baseline, is_right_better, x, along, y, wide)
    label = f"Difference of each method to {results.baseline} with 95 % intervals (pairs). " + "; ".join(
        f"{m.name}: {_difference(m, results.metric)}" for m in shown if not m.is_baseline
    )
    return drawing(width, y + 44, label, [*axis, *parts], class_="wide" if wide else "narrow")


def _best(shown: list[Method], most: int | None) -> list[Method]:
    if most is None or len(shown) <= most:
        return shown
    best = sorted((m for m in shown if not m.is_baseline), key=lambda m: m.rank)[: most - 1]
    return [m for m in shown if m.is_baseline or m in best]


def _difference_limits(shown: list[Method]) -> tuple[float, float]:
    centres = [0.0, *(d for m in shown for _, d in m.differences)]
    ends = (end for m in shown for r in [m.result] for end in (r.diff_low, r.diff_high, r.new_low, r.new_high))
    return limits(centres, ends)


def _tier(tier: int, y: float, width: float, row: float, wide: bool) -> Markup:
    down = row / 2 + 1 if wide else 17
    return line(0, y, width, y, "rule") + tag("text", f"Tier {tier}", class_="tier", x=0, y=y + down)


def _difference_row(method: Method, metric: str, x: Scale, y: float, width: float, row: float, wide: bool) -> Markup:
    result = method.result
    label, middle, left = (y + row / 2 - 3, y + row / 2 - 4, 58.0) if wide else (y + 8, y + 29, 6.0)
    words = "baseline" if method.is_baseline else _difference(method, metric)
    parts = [
        marker(method.index, left, label, 4.5),
        tag(
            "text",
            cut(method.name, 25 if wide else 19),
            tag("title", method.name),
            class_="name",
            x=left + 12,
            y=label + 4.5,
        ),
        tag("text", words, class_="value", x=width, y=label + 4.5, text_anchor="end"),
    ]
    if method.is_baseline:
        return series(0, *parts, marker(0, x(0), middle, 5))
    parts += [band(x, result.new_low, result.new_high, middle), bar(x, result.diff_low, result.diff_high, middle)]
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


def score_plot(results: Collected, metric: str) -> Markup:
    """A panel of each method's own value of a metric: mean, 95 % interval, a dot for each seed. Best first."""
    up = ALL_METRICS[metric].higher_is_better
    shown = sorted((m for m in results.methods if m.estimates[metric].n), key=lambda m: m.estimates[metric].mean)
    shown = shown[::-1] if up else shown
    if not shown:
        return NOTHING
    every = [m.estimates[metric] for m in shown]
    dots = [s for m in shown for s in m.scores(metric) if math.isfinite(s)]
    low, high = limits(dots, (end for e in every for end in (e.low, e.high)), reach=0.3)
    x = Scale(0.0 if low < 0.3 * high else low, high, 140.0, PANEL - 50)
    bottom = 34 + 26.0 * len(shown)
    better = "higher" if up else "lower"
    unit = ", %" if is_share(metric) else f", {ALL_METRICS[metric].unit}"
    parts = [heading(f"{title_of(metric)}{unit} ({better} is better)")]
    ticks = x.ticks(4)
    digits = decimals([(100 if is_share(metric) else 1) * t for t in ticks])
    for t in ticks:
        text = number((100 if is_share(metric) else 1) * t, digits)
        parts.append(line(x(t), 28, x(t), bottom, "grid"))
        parts.append(tag("text", text, class_="tick", x=x(t), y=bottom + 16, text_anchor="middle"))
    parts += [_score_row(m, metric, x, 40 + 26.0 * i) for i, m in enumerate(shown)]
    label = f"{title_of(metric)} of each method with 95 % intervals over seeds. " + "; ".join(
        f"{m.name}: {value(e.mean, metric)} {interval(e.low, e.high, metric)} ({e.n})"
        for m, e in zip(shown, every, strict=True)
    )
    return drawing(PANEL, bottom + 24, label, parts, class_="rows")


def _score_row(method: Method, metric: str, x: Scale, y: float) -> Markup:
    e = method.estimates[metric]
    tip = tag("title", f"{method.name}: {value(e.mean, metric)} {interval(e.low, e.high, metric)}, n = {e.n}")
    parts = [
        marker(method.index, 6, y, 4.5),
        tag("text", cut(method.name, 17), tag("title", method.name), class_="name small", x=16, y=y + 4),
        tag("text", value(e.mean, metric), class_="value", x=PANEL, y=y + 4, text_anchor="end"),
        bar(x, e.low, e.high, y),
    ]
    for run in method.runs:
        if run.finished and math.isfinite(run.metrics[metric]):
            parts.append(tag("circle", class_="seed", cx=x(run.metrics[metric]), cy=y + 9, r=1.8))
    return series(method.index, *parts, marker(method.index, x(e.mean), y, 4.2, tip))
