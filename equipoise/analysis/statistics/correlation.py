"""Whether two measures rank the methods alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def rank_correlation(points: Mapping[str, Sequence[Sequence[Any]]]) -> float:
    """Spearman's, between the two means of each method; not known for fewer than three methods.

    >>> rank_correlation({"a": [(0.1, 0.9)], "b": [(0.2, 0.8)], "c": [(0.3, 0.1), (0.5, 0.1)]})
    -1.0
    """
    from scipy.stats import rankdata

    if len(points) < 3:
        return math.nan
    x, y = (rankdata([np.mean([p[k] for p in own]) for own in points.values()]) for k in (0, 1))
    if x.std() == 0 or y.std() == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1].round(6))
