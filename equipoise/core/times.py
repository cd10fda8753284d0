"""Spans of time in words: as a clock shows them, to the second, or roughly."""

from __future__ import annotations

import math


def clock(seconds: float) -> str:
    """For a number that runs.

    >>> clock(80), clock(3 * 3600 + 61)
    ('1:20', '3:01:01')
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def duration(seconds: float) -> str:
    """For what was measured.

    >>> duration(4.2), duration(75), duration(8000)
    ('4.2 s', '1 min 15 s', '2 h 13 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def about(seconds: float) -> str:
    """For an estimate.

    >>> [about(seconds) for seconds in (0.42, 48, 340, 9000)]
    ['0.4 s', '48 s', '6 min', '2.5 h']
    """
    if math.isnan(seconds):
        return "not known"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
