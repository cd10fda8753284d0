"""Every pair of methods: the difference of their scores seed by seed, for the reader to choose any two."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from markupsafe import Markup

from ..analysis import mean_interval
from ..analysis.statistics.priority import ALL_METRICS
from ..analysis.statistics.verdict import PairResult
from .collected import Collected, Method
from .render.words import is_share, title_of

MOST_CLASSES = 200  # beyond, the differences class by class are left out of the page


@dataclass(frozen=True)
class Pair:
    """`difference` is the score of `second` minus that of `first` over the `n` seeds both have, with a 95 % interval.

    `p` is of the sign-flip test of this pair alone; `p_holm` has all corrections, as the verdict and its tiers have it.
    """

    first: Method
    second: Method
    n: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


def all_pairs(results: Collected) -> list[Pair]:
    """All pairs, in the order of the ranking; NaN where they share no seed."""
    tests = {frozenset((pair.first, pair.second)): pair for pair in results.verdict.pairs}
    return [
        _pair(a, b, results.metric, tests.get(frozenset((a.name, b.name)))) for a, b in combinations(results.methods, 2)
    ]


def _pair(first: Method, second: Method, metric: str, test: PairResult | None) -> Pair:
    gain = _gain(first, second, metric)
    mean = float(gain.mean()) if len(gain) else math.nan
    p, p_holm = (test.p, test.p_holm) if test else (math.nan, math.nan)
    return Pair(first, second, len(gain), mean, *mean_interval(gain), p, p_holm)


def _gain(first: Method, second: Method, metric: str) -> np.ndarray:
    difference = np.subtract(second.scores(metric), first.scores(metric))
    return difference[np.isfinite(difference)]


def embedded(results: Collected, pairs: list[Pair]) -> Markup:
    """What compare.js needs to draw a comparison, as JSON that cannot end the script element it stands in."""
    content = {
        "metric": {
            "title": title_of(results.metric),
            "share": is_share(results.metric),
            "unit": "points" if is_share(results.metric) else ALL_METRICS[results.metric].unit,
            "up": results.verdict.higher_is_better,
        },
        "seeds": results.seeds,
        "classes": [[results.class_names[c], results.class_counts[c]] for c in _classes(results)],
        "methods": {str(m.index): _method(m, results) for m in results.methods},
        "pairs": {
            f"{p.first.index}-{p.second.index}": [p.n, *map(_short, (p.difference, p.low, p.high, p.p, p.p_holm))]
            for p in pairs
        },
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # "</script>" and "<!--" would be read as HTML, and U+2028 ends a line for old readers of JSON
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _classes(results: Collected) -> list[int]:
    return results.by_size if len(results.class_names) <= MOST_CLASSES else []


def _method(method: Method, results: Collected) -> dict[str, Any]:
    e = method.estimates[results.metric]
    classes = _classes(results) if method.per_class else []
    return {
        "name": method.name,
        "scores": [_short(score) for score in method.scores(results.metric)],
        "mean": [_short(e.mean), _short(e.low), _short(e.high)],
        "classes": [_short(method.per_class[c].mean) for c in classes],
    }


def _short(x: float) -> float | None:
    """Nine digits, so that what is rounded again is rounded alike; JSON has no NaN."""
    return float(f"{x:.9g}") if math.isfinite(x) else None
