"""What several data sets say together, in sentences."""

from __future__ import annotations

import math

from ...analysis.statistics.combined import LEAST, Combined, CombinedMethod
from ...core.words import counted
from .words import is_share, p_value, title_of, value


def sentences(combined: Combined) -> list[str]:
    """The answer first, then each claim with what a further data set would show, then where data sets disagree."""
    others = [method for method in combined.methods if method.effects]
    judged = [method for method in others if len(method.effects) >= LEAST]
    said = [_headline(combined, judged)] if judged else [_nothing(combined, others)]
    said += [_expected(combined, method) for method in judged if method.standing in ("better", "worse")]
    return said + [_disagreement(combined, method) for method in others if method.against]


def _headline(combined: Combined, judged: list[CombinedMethod]) -> str:
    over = f"Over {counted(len(combined.data), 'data set')}"
    claimed = [method for method in judged if method.standing == "better"]
    if claimed:
        names = _listed([method.name for method in claimed])
        verb = "is" if len(claimed) == 1 else "are"
        return (
            f"{over}, {names} {verb} better than {combined.baseline} on average ({title_of(combined.metric).lower()})."
        )
    worse = [method.name for method in judged if method.standing == "worse"]
    also = f" {_listed(worse)} {'is' if len(worse) == 1 else 'are'} worse." if worse else ""
    best = judged[0]
    return (
        f"{over}, no method is shown to be better than {combined.baseline} on average "
        f"({title_of(combined.metric).lower()}); the best mean is that of {best.name}, {_effect(combined, best)}.{also}"
    )


def _nothing(combined: Combined, others: list[CombinedMethod]) -> str:
    if not others:
        return f"No method shares a seed with {combined.baseline} on any data set, so nothing can be compared."
    return f"No method is on {LEAST} data sets with {combined.baseline}, so there is no mean; each speaks for itself."


def _expected(combined: Combined, method: CombinedMethod) -> str:
    said = (
        f"{method.name} is {method.standing}: {_effect(combined, method)}, {_p(method.p_holm)} after Holm. On a "
        f"further data set of this kind expect {_span(combined, method.next_low, method.next_high)}."
    )
    if math.isnan(method.tau):
        return said
    return f"{said} The effect varies by τ = {_points(combined, method.tau)} between data sets."


def _disagreement(combined: Combined, method: CombinedMethod) -> str:
    parts = []
    for data in method.against:
        effect = method.effect_on(data)
        assert effect is not None
        parts.append(f"{data} ({_points(combined, effect.mean, sign=True)})")
    side = "above" if method.mean > 0 else "below"
    return f"{method.name} is {side} {combined.baseline} on average, and surely not on {_listed(parts)}."


def _effect(combined: Combined, method: CombinedMethod) -> str:
    return f"{_points(combined, method.mean, sign=True)} (95 % interval {_span(combined, method.low, method.high)})"


def _span(combined: Combined, low: float, high: float) -> str:
    return f"{value(low, combined.metric, sign=True)} to {_points(combined, high, sign=True)}"


def _points(combined: Combined, x: float, sign: bool = False) -> str:
    return value(x, combined.metric, sign) + (" points" if is_share(combined.metric) else "")


def _p(p: float) -> str:
    return f"p {p_value(p)}" if p < 0.001 else f"p = {p_value(p)}"


def _listed(names: list[str]) -> str:
    """
    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
