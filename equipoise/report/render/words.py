"""Numbers and names as a reader wants them: percent with one decimal, a true minus sign, a dash for "not known"."""

from __future__ import annotations

import math

from ...analysis.statistics.priority import ALL_METRICS

UNKNOWN = "–"
HEADINGS = {
    "top5": "Top-5",
    "worst_class": "Worst class",
    "many": "Many",
    "medium": "Medium",
    "few": "Few",
    "nll": "NLL",
    "ece": "ECE",
}


def number(value: float, digits: int = 1, sign: bool = False) -> str:
    """A number with so many decimals.

    >>> number(-0.52), number(0.04, sign=True), number(-0.04), number(math.nan)
    ('−0.5', '+0.0', '0.0', '–')
    """
    if not math.isfinite(value):
        return UNKNOWN
    rounded = round(value, digits) + 0.0  # no minus zero
    return f"{rounded:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def is_share(name: str) -> bool:
    """Whether values of a metric, or of its curve on validation data, are fractions, shown times 100."""
    name = name.removeprefix("valid_")
    return ALL_METRICS[name].unit == "percent" if name in ALL_METRICS else "accuracy" in name


def value(x: float, name: str, sign: bool = False) -> str:
    """A value of metric `name` in its unit: percent with one decimal, anything else with three.

    >>> value(0.7123, "balanced_accuracy"), value(0.7123, "nll")
    ('71.2', '0.712')
    """
    return number(100 * x, 1, sign) if is_share(name) else number(x, 3, sign)


def interval(low: float, high: float, name: str, sign: bool = False) -> str:
    """`[70.1, 72.3]`; what one run cannot tell is said so."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "[no interval]"
    return f"[{value(low, name, sign)}, {value(high, name, sign)}]"


def p_value(p: float) -> str:
    """Two significant digits, and never 0: no test is that sure.

    >>> p_value(0.03125), p_value(0.5), p_value(0.00002), p_value(math.nan)
    ('0.031', '0.50', '< 0.001', '–')
    """
    if math.isnan(p):
        return UNKNOWN
    return "< 0.001" if p < 0.001 else f"{p:.2f}" if p >= 0.1 else f"{p:.3f}"


def title_of(name: str) -> str:
    """The name of a metric or curve in words.

    >>> title_of("nll"), title_of("valid_few"), title_of("train_loss")
    ('Negative log-likelihood', 'Validation accuracy of rare classes', 'Training loss')
    """
    if name in ALL_METRICS:
        label = ALL_METRICS[name].label
    else:
        kind, _, rest = name.partition("_")
        kind = {"valid": "validation", "train": "training"}.get(kind, kind)
        label = f"{kind} {ALL_METRICS[rest].label if rest in ALL_METRICS else rest.replace('_', ' ')}".rstrip()
    return label[:1].upper() + label[1:]


def heading(name: str) -> str:
    """The short title of a metric's column, with its unit."""
    unit = "%" if is_share(name) else ALL_METRICS[name].unit
    return f"{HEADINGS.get(name) or title_of(name)}\u00a0{unit}".rstrip()


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def last_line(text: str) -> str:
    """Of a traceback, what happened."""
    return text.strip().rpartition("\n")[2]
