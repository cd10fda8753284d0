"""When a study that adds seeds in rounds is looked at, and what each look may spend of its error rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .tests import smallest_n_for_claim

MOST_LOOKS = 5
LEAST_GROWTH = 1.25  # from one look to the next; looks that lie closer cost more of alpha than they save in runs


@dataclass(frozen=True)
class Looks:
    r"""After how many seeds the scores are looked at, and the share of alpha that each look may spend.

    A comparison may end at any look, for any reason: its p-value divided by the share of that look is a p-value again,

    .. math:: P\Big(\frac{p_\tau}{w_\tau} \le u\Big) \le \sum_j P(p_j \le u \, w_j) \le u \sum_j w_j \le u,

    whatever made it end at look :math:`\tau`: a score, a budget, or impatience.

    >>> looks = Looks(seeds=(8, 12, 18), shares=(0.25, 0.25, 0.5))
    >>> [looks.at(n_seeds) for n_seeds in (7, 8, 17, 30)]
    [0, 1, 2, 3]
    """

    seeds: tuple[int, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.seeds) != len(self.shares) or not self.seeds:
            raise ValueError(f"each look needs its share, but there are {len(self.seeds)} and {len(self.shares)}")
        if list(self.seeds) != sorted({*self.seeds}) or self.seeds[0] < 1:
            raise ValueError(f"each look must have more seeds than the one before, not {self.seeds}")
        if min(self.shares) <= 0 or sum(self.shares) > 1 + 1e-9:
            raise ValueError(f"shares must be above 0 and sum to 1 at most, not {self.shares}")

    def at(self, n_seeds: int) -> int:
        """The last look, counted from 1, that so many seeds allow; 0 before the first."""
        return sum(seeds <= n_seeds for seeds in self.seeds)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Looks:
        """The looks of plain data, as `dataclasses.asdict` gives it."""
        return cls(tuple(data["seeds"]), tuple(data["shares"]))


def plan_looks(max_seeds: int, comparisons: int, alpha: float = 0.05) -> Looks:
    """Up to `MOST_LOOKS` looks of equal shares, from the fewest seeds that can support a claim to `max_seeds`.

    Each has as many times the seeds of the one before; there are fewer where that would be less than `LEAST_GROWTH`
    times.

    >>> plan_looks(max_seeds=36, comparisons=7).seeds
    (11, 15, 20, 27, 36)
    >>> plan_looks(max_seeds=10, comparisons=7)
    Looks(seeds=(10,), shares=(1.0,))
    """
    least = smallest_n_for_claim(alpha, comparisons)
    if max_seeds < least:
        raise ValueError(
            f"{max_seeds} seeds cannot decide anything between {comparisons + 1} methods: at least {least} are needed"
        )
    for count in range(MOST_LOOKS, 1, -1):
        first = smallest_n_for_claim(alpha / count, comparisons)
        growth = (max_seeds / first) ** (1 / (count - 1))
        if growth >= LEAST_GROWTH:
            seeds = [math.ceil(round(first * growth**i, 6)) for i in range(count)]
            return Looks(tuple(seeds), (1 / count,) * count)
    return Looks((max_seeds,), (1.0,))
