"""Scores of several methods, paired by seed: checked, cut to the looks that count, subtracted, ranked, tested."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .._arrays import Floats, host
from .._kinds import Array
from ._flips import sign_flip_tests
from .family import Family, Stage
from .looks import Looks
from .tests import holm

Pair = tuple[str, str]
Test = Callable[[Sequence[Floats], int], list[float]]  # differences of each pair, a seed of random signs -> p-values


class Evidence(NamedTuple):
    """The p-value of the data alone, that with all corrections, and of how many pairs they are."""

    p: float
    adjusted: float
    n_pairs: int


class Paired:
    """Scores (n_seeds,) of each method. In a study with looks, `look` is the last that each method has taken.

    `family` is what was asked before of the same test set, where there is such a thing.
    """

    def __init__(
        self,
        scores: Mapping[str, Array],
        baseline: str,
        looks: Looks | None,
        taken: Mapping[str, int] | None,
        family: Family | None = None,
    ) -> None:
        self.runs, self.looks, self.baseline = _checked(scores, baseline), looks, baseline
        self.look: dict[str, int | None] = dict.fromkeys(self.runs)
        if looks is not None:
            n_seeds = len(self.runs[baseline])
            self.look = {name: looks.at(n_seeds) if taken is None else taken.get(name, 0) for name in self.runs}
            self.runs = {name: _until(looks, self.look[name] or 0, x) for name, x in self.runs.items()}
        self.stages = family.own if family and family.stages else (self._all_at_once(),)

    def _all_at_once(self) -> Stage:
        """All that is there, as the first and only look."""
        known = {
            name: ~np.isnan(x - self.runs[self.baseline]) for name, x in self.runs.items() if name != self.baseline
        }
        places = {name: frozenset(np.flatnonzero(there).tolist()) for name, there in known.items()}
        return Stage({name: some for name, some in places.items() if some}, share=1.0, own=True)

    def known(self, name: str) -> Floats:
        """The scores of the runs that are there."""
        return self.runs[name][~np.isnan(self.runs[name])]

    def differences(self, name: str, other: str) -> Floats:
        """Score minus the other's, of the seeds they share."""
        d = self.runs[name] - self.runs[other]
        return d[~np.isnan(d)]

    def both(self, name: str, other: str) -> list[bool]:
        """For each seed whether both runs are there."""
        known: list[bool] = (~np.isnan(self.runs[name] - self.runs[other])).tolist()
        return known

    def ranked(self, baseline: str, sign: int) -> list[str]:
        """The order that `Verdict` explains; equal methods stay in the order given."""

        def place(name: str) -> tuple[int, float]:
            x, d = self.known(name), self.differences(name, baseline)
            if len(d):
                return 0, -sign * mean(d)
            return (1, -sign * mean(x)) if len(x) else (2, 0.0)

        return sorted(self.runs, key=place)

    def tests(self, pairs: Sequence[Pair], seed: int, test: Test = sign_flip_tests) -> dict[Pair, Evidence]:
        """Tests of these pairs, corrected for their looks and, by Holm, for each other.

        Of a pair that was tested at several stages the best evidence stands: each has its own part of alpha.
        """
        best = dict.fromkeys(pairs, Evidence(math.nan, math.nan, 0))
        for stage in self.stages:
            for pair, evidence in self._tests_at(stage, pairs, seed, test).items():
                if not best[pair].adjusted <= evidence.adjusted:  # as nan is not
                    best[pair] = evidence
        return best

    def _tests_at(self, stage: Stage, pairs: Sequence[Pair], seed: int, test: Test) -> dict[Pair, Evidence]:
        """The same with what was there at one stage."""
        pairs = [pair for pair in pairs if stage.pairs.keys() >= {*pair} - {self.baseline}]
        differences = [self._differences_at(stage, *pair) for pair in pairs]
        p = test(differences, seed)
        corrected = [
            # a run that was compared and is there no more had some p: it counts as the largest
            1.0 if math.isnan(value) and self.baseline in pair else over(value, stage.share * self.share(*pair))
            for value, pair in zip(p, pairs, strict=True)
        ]
        adjusted = holm(corrected).tolist()
        return {
            pair: Evidence(one, math.nan if math.isnan(one) else all_together, len(d))
            for pair, one, all_together, d in zip(pairs, p, adjusted, differences, strict=True)
        }

    def _differences_at(self, stage: Stage, name: str, other: str) -> Floats:
        places = frozenset.intersection(*(stage.pairs[n] for n in (name, other) if n != self.baseline))
        d = (self.runs[name] - self.runs[other])[sorted(places)]
        return d[~np.isnan(d)]

    def claims(self, baseline: str, seed: int, test: Test = sign_flip_tests) -> dict[Pair, Evidence]:
        """The tests of all methods against the baseline."""
        return self.tests([(name, baseline) for name in self.runs if name != baseline], seed, test)

    def between(self, claims: Mapping[Pair, Evidence], seed: int) -> dict[Pair, Evidence]:
        """The tests of all pairs of other methods, with a Holm adjustment of their own.

        They count only if some claim is made, or a split among methods none of which is said to differ from the
        baseline would be a claim through the back door. So no adjusted p-value is below the least of the claims.
        """
        others = [name for (name, _), evidence in claims.items() if not math.isnan(evidence.p)]
        least = min((claims[name, self.baseline].adjusted for name in others), default=1.0)
        tests = self.tests(list(combinations(others, 2)), seed)
        return {
            pair: evidence if math.isnan(evidence.p) else evidence._replace(adjusted=max(least, evidence.adjusted))
            for pair, evidence in tests.items()
        }

    def below(self, tests: Mapping[Pair, Evidence], sign: int, alpha: float) -> set[Pair]:
        """All (lower, higher) that these tests separate."""
        separable = [pair for pair, evidence in tests.items() if evidence.adjusted <= alpha]  # nan: no seed is shared
        return {(a, b) if sign * self.differences(a, b).mean() < 0 else (b, a) for a, b in separable}

    def share(self, name: str, other: str) -> float:
        """The share of alpha that belongs to the last look at which both were there; 1 without looks."""
        look = min(self.look[name] or 0, self.look[other] or 0)
        return self.looks.shares[look - 1] if self.looks is not None and look else 1.0


def over(p: float, share: float) -> float:
    """A p-value over its share of alpha; where the share is 0 nothing can be claimed."""
    return p / share if share > 0 else math.nan if math.isnan(p) else 1.0


def mean(x: Floats) -> float:
    return float(x.mean()) if len(x) else math.nan


def _checked(scores: Mapping[str, Array], baseline: str) -> dict[str, Floats]:
    if baseline not in scores:
        raise ValueError(f"baseline {baseline!r} has no scores; there are {', '.join(scores) or 'none'}")
    runs = {name: host(values) for name, values in scores.items()}
    for name, x in runs.items():
        if x.ndim != 1 or not len(x):
            raise ValueError(f"scores of {name} must be one number for each seed, not a value of shape {x.shape}")
        if len(x) != len(runs[baseline]):
            raise ValueError(
                f"scores are paired by position, but {name} has {len(x)} and {baseline} {len(runs[baseline])}; "
                "put nan where a run is missing"
            )
        if np.isinf(x).any():
            raise ValueError(f"scores of {name} are not finite: {x.tolist()}; put nan for a run that failed")
    return runs


def _until(looks: Looks, look: int, x: Floats) -> Floats:
    """The scores up to a look, nan after it: what came later may not be used, for it has no share."""
    seeds = looks.seeds[look - 1] if look else 0
    return np.where(np.arange(len(x)) < seeds, x, math.nan)
