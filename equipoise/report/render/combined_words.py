"""What several data sets say together, in sentences."""

from __future__ import annotations

import math

from ...analysis.statistics.combined import LEAST, Combined, CombinedMethod
from ...core.words import counted
from .words import is_share, p_value, title_of, value


def sentences(found: Combined) -> list[str]:
    """The answer first, then each claim with what a further data set would show, then where data sets disagree."""
    others = [method for method in found.methods if method.effects]
    judged = [method for method in others if len(method.effects) >= LEAST]
    said = [_headline(found, judged)] if judged else [_nothing(found, others)]
    said += [_expected(found, method) for method in judged if method.standing in ("better", "worse")]
    return said + [_disagreement(found, method) for method in others if method.against]


def _headline(found: Combined, judged: list[CombinedMethod]) -> str:
    over = f"Over {counted(len(found.data), 'data set')}"
    claimed = [method for method in judged if method.standing == "better"]
    if claimed:
        names = _listed([method.name for method in claimed])
        verb = "is" if len(claimed) == 1 else "are"
        return f"{over}, {names} {verb} better than {found.baseline} on average ({title_of(found.metric).lower()})."
    worse = [method.name for method in judged if method.standing == "worse"]
    also = f" {_listed(worse)} {'is' if len(worse) == 1 else 'are'} worse." if worse else ""
    best = judged[0]
    return (
        f"{over}, no method is shown to be better than {found.baseline} on average ({title_of(found.metric).lower()}); "
        f"the best mean is that of {best.name}, {_effect(found, best)}.{also}"
    )


def _nothing(found: Combined, others: list[CombinedMethod]) -> str:
    if not others:
        return f"No method shares a seed with {found.baseline} on any data set, so nothing can be compared."
    return f"No method is on {LEAST} data sets with {found.baseline}, so there is no mean; each speaks for itself."


def _expected(found: Combined, method: CombinedMethod) -> str:
    said = (
        f"{method.name} is {method.standing}: {_effect(found, method)}, {_p(method.p_holm)} after Holm. On a further "
        f"data set of this kind expect {_span(found, method.next_low, method.next_high)}."
    )
    if math.isnan(method.tau):
        return said
    return f"{said} The effect varies by τ = {_points(found, method.tau)} between data sets."


def _disagreement(found: Combined, method: CombinedMethod) -> str:
    parts = []
    for data in method.against:
        effect = method.effect_on(data)
        assert effect is not None
        parts.append(f"{data} ({_points(found, effect.mean, sign=True)})")
    side = "above" if method.mean > 0 else "below"
    return f"{method.name} is {side} {found.baseline} on average, and surely not on {_listed(parts)}."


def _effect(found: Combined, method: CombinedMethod) -> str:
    return f"{_points(found, method.mean, sign=True)} (95 % interval {_span(found, method.low, method.high)})"


def _span(found: Combined, low: float, high: float) -> str:
    return f"{value(low, found.metric, sign=True)} to {_points(found, high, sign=True)}"


def _points(found: Combined, x: float, sign: bool = False) -> str:
    return value(x, found.metric, sign) + (" points" if is_share(found.metric) else "")


def _p(p: float) -> str:
    return f"p {p_value(p)}" if p < 0.001 else f"p = {p_value(p)}"


def _listed(names: list[str]) -> str:
    """
    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
