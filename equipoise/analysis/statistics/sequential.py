"""A study that adds seeds in rounds: what each round settles, which methods go on, and when it may end.

These decisions are made on validation scores, so that the test set stays sealed. Their own errors are kept at alpha by
the same `Looks` that keep those of the claims, which the report makes on test scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._arrays import Floats
from .._kinds import Array
from ._paired import Evidence, Pair, Paired
from .looks import Looks
from .power import claim_power

LEAST_HOPE = 0.2  # chance to be answered by the last look; a question with less is not worth its runs


@dataclass(frozen=True)
class Round:
    """What a look found: the `methods` that took part, those `dropped` with the reason, and the questions left.

    Those in `open` may be answered by a later look; those `given_up` have too little chance of that.
    """

    methods: tuple[str, ...]
    dropped: Mapping[str, str]
    open: tuple[str, ...]
    given_up: tuple[str, ...]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Round:
        """What `dataclasses.asdict` gave; a ValueError, KeyError or TypeError where it is something else."""
        names = [tuple(data[name]) for name in ("methods", "open", "given_up")]
        dropped = dict(data["dropped"].items())
        if not all(isinstance(name, str) for some in (*names, dropped, dropped.values()) for name in some):
            raise ValueError("a method or a question has no name")
        methods, open_, given_up = names
        return cls(methods, dropped, open_, given_up)

    @property
    def kept(self) -> tuple[str, ...]:
        """The methods that go on."""
        return tuple(name for name in self.methods if name not in self.dropped)


@dataclass(frozen=True)
class Rounds:
    """The plan of a study in rounds, and what the rounds `found` so far. `ended` says why it ended, None while it runs.

    `seeds` are all that the plan may use, in order; look j has the first `looks.seeds[j - 1]` of them. `judged_on` is
    "validation", or "test" where a peek was asked for.
    """

    alpha: float
    looks: Looks
    seeds: tuple[int, ...]
    found: tuple[Round, ...] = ()
    ended: str | None = None
    judged_on: str = "validation"

    FILE = "sequential.json"  # of a store

    @property
    def taken(self) -> dict[str, int]:
        """The last look that each method took part in."""
        return {name: look for look, each in enumerate(self.found, start=1) for name in each.methods}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rounds:
        """What `to_dict` wrote; a ValueError, KeyError or TypeError where it is something else."""
        rounds = tuple(Round.from_dict(r) for r in data["found"])
        looks, seeds = Looks.from_dict(data["looks"]), tuple(data["seeds"])
        if len(seeds) < looks.seeds[-1] or not all(type(seed) is int for seed in seeds):
            raise ValueError(f"its looks need {looks.seeds[-1]} seeds, and it has {seeds}")
        if len(rounds) > len(looks.seeds) or not 0 < data["alpha"] < 1:
            raise ValueError(f"{len(rounds)} looks of {len(looks.seeds)} were taken, at {data['alpha']}")
        return cls(data["alpha"], looks, seeds, rounds, data["ended"], data["judged_on"])


def judge(
    scores: Mapping[str, Array], baseline: str, rounds: Rounds, *, higher_is_better: bool, seed: int = 0
) -> Round:
    """What the next look finds in the validation `scores` (n_seeds,) of all methods, nan where there is no run.

    Dropped is what is surely worse than the baseline or than the best, and what shares no finished run with the
    baseline. Of each method that stays two questions are asked: is it different from the baseline, and from the best? A
    question that is not answered is open, or given up where it has less than one chance in five (`LEAST_HOPE`) to be
    answered by the last look, were the true difference one standard error larger than the one seen. To give up can
    lose claims, but makes no false ones.
    """
    methods = rounds.found[-1].kept if rounds.found else tuple(scores)
    taken = rounds.taken | dict.fromkeys(methods, len(rounds.found) + 1)
    paired, sign = Paired(scores, baseline, rounds.looks, taken), 1 if higher_is_better else -1
    claims = paired.claims(baseline, seed)
    below = paired.below({**claims, **paired.between(claims, seed)}, sign, rounds.alpha)
    ranked = [name for name in paired.ranked(baseline, sign) if name in methods]
    dropped = _dropped(ranked, baseline, below, claims)
    compared = sum(not math.isnan(evidence.p) for evidence in claims.values())
    families = {ranked[0]: math.comb(compared, 2), baseline: compared}  # of how many tests a question is one
    hopes = {
        f"{name} against {other}": _hope(paired.differences(name, other), rounds, comparisons)
        for other, comparisons in families.items()
        for name in ranked
        if name not in (other, baseline) and name not in dropped and (other, name) not in below
    }
    left = tuple(question for question, hope in hopes.items() if hope >= LEAST_HOPE)
    return Round(methods, dropped, left, tuple(question for question in hopes if question not in left))


def _dropped(ranked: Sequence[str], baseline: str, below: set[Pair], claims: Mapping[Pair, Evidence]) -> dict[str, str]:
    reasons = {}
    for name in ranked:
        higher = next((other for other in (baseline, ranked[0]) if (name, other) in below), None)
        if name != baseline and math.isnan(claims[name, baseline].p):
            reasons[name] = f"shares no finished run with {baseline}"
        elif name != baseline and higher is not None:
            reasons[name] = f"surely worse than {higher}"
    return reasons


def _hope(differences: Floats, rounds: Rounds, comparisons: int) -> float:
    """Chance that the last look answers, were the true difference one standard error larger than the one seen."""
    n, last = len(differences), rounds.looks.seeds[-1]
    if n >= last or not differences.any():
        return 0.0
    spread = float(np.std(differences, ddof=1)) if n > 1 else math.inf
    if spread in (0.0, math.inf):
        return 1.0
    effect = abs(float(differences.mean())) / spread + 1 / math.sqrt(n)
    return claim_power(last, effect, rounds.alpha * rounds.looks.shares[-1], comparisons)
