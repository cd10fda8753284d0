r"""What a test set was asked before, and what that leaves for the next question.

Whoever looks at results, then leaves out the methods that spoil Holm's adjustment, takes another metric, or adds seeds,
and looks again, finds something in the end. So every look counts that was ever taken:

* what was compared once stays in the family: a method that is dropped, a seed that is left out;
* the first look has all of alpha. A later one that adds methods or seeds has what those before left: alpha minus the
  largest chance of a false claim that each of them had. With few pairs that is less than alpha, and 0 where no claim
  was possible, because the p of an exact test comes in steps;
* a metric that was not the first one's, or a baseline that was a method before, was chosen when the results were known.
  It is judged as one of all that could have been chosen, by the same looks;
* a claim once made stays: a method's adjusted p is the least of those at the looks it was part of.

The chances of a false claim of all looks add up to alpha at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .tests import MAX_EXACT

NONE: frozenset[int] = frozenset()
DUST = 1e-9  # what rounding leaves of an error rate that is spent


@dataclass(frozen=True)
class Asked:
    """A comparison as it was looked at: for each method, the baseline included, the places of its scores."""

    metric: str
    baseline: str
    scores: Mapping[str, frozenset[int]]


@dataclass(frozen=True)
class Stage:
    """A look at all that was open by then: the places of the scores that each method shared with the baseline.

    `share` of alpha is what it may spend on one metric and baseline. `own`: it was by the metric and the baseline that
    are asked for now.
    """

    pairs: Mapping[str, frozenset[int]]
    share: float
    own: bool


@dataclass(frozen=True)
class Family:
    """All that counts in a verdict. `left` is the share of alpha that a further look would have.

    Without stages the verdict is on the first look, at all there is.
    `gone` are methods that were compared before and are asked for no more; `notes` say in words what else is counted.
    """

    stages: tuple[Stage, ...]
    left: float
    gone: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def own(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if stage.own)

    @property
    def share(self) -> float:
        """Of the look at all that is there now."""
        return self.own[-1].share if self.stages else 1.0


def family_of(
    asked: Sequence[Asked], metrics: int, alpha: float = 0.05, gone: Iterable[str] = (), notes: Iterable[str] = ()
) -> Family:
    """What counts in the verdict on the last of `asked`, all in the order they were looked at.

    `metrics` is the number of those that a reader of the first look saw, and could have chosen from.

    >>> both = {"plain": frozenset(range(6)), "focal": frozenset(range(6))}
    >>> first, changed = Asked("accuracy", "plain", both), Asked("macro_f1", "plain", both)
    >>> family_of([first], metrics=11).share, round(family_of([first, changed], metrics=11).share, 3)
    (1.0, 0.034)
    """
    now, left = asked[-1], alpha
    open_: dict[str, frozenset[int]] = {}
    bases: dict[str, _Base] = {}
    levels: dict[object, float] = {}  # of looks, by the baseline, what was there, and whether it was asked first
    stages: dict[object, Stage] = {}
    for look in asked:
        base = bases.setdefault(look.baseline, _Base.of(look, asked[0], open_))
        base.members |= open_.keys() if base.choices > 1 else look.scores.keys()
        open_ = {name: open_.get(name, NONE) | look.scores.get(name, NONE) for name in {**open_, **look.scores}}
        shared = {name: open_[name] & open_[look.baseline] for name in base.members | look.scores.keys()}
        pairs = {name: places for name, places in shared.items() if places and name != look.baseline}
        choices = base.choices * (1 if look.metric == base.metric else metrics)
        place = look.baseline, frozenset(pairs.items()), choices > base.choices
        if place not in levels:
            levels[place] = left / choices
            left -= choices * largest_error([*map(len, pairs.values())], left / choices)
            left = left if left > DUST else 0.0
        own = (look.metric, look.baseline) == (now.metric, now.baseline)
        stages.setdefault((place, own), Stage(pairs, levels[place] / alpha, own))
    return Family(tuple(stages.values()), left / alpha, tuple(gone), tuple(notes))


@dataclass
class _Base:
    """A baseline: the metric that was first asked with it, and the methods that were compared with it.

    `choices` is how many could have been taken for it by one who had seen their results; 1 if it was new.
    """

    metric: str
    choices: int
    members: set[str]

    @classmethod
    def of(cls, look: Asked, first: Asked, open_: Mapping[str, frozenset[int]]) -> _Base:
        seen = look.baseline in open_
        return cls(first.metric if seen else look.metric, len(open_) if seen else 1, set())


def largest_error(n_pairs: Sequence[int], level: float) -> float:
    """The largest chance of a false claim by sign-flip tests of so many pairs, one a method, and Holm at `level`.

    Any number of the methods may truly differ: the first claim needs p <= level / m, and with k methods that do not
    differ a false one needs p <= level / k of one of these.

    >>> largest_error([6, 6, 6], 0.05), largest_error([6], 0.05), largest_error([7, 7, 7], 0.05)
    (0.0, 0.03125, 0.046875)
    """
    if level <= 0 or not any(_size(n, level / len(n_pairs)) for n in n_pairs):
        return 0.0
    sums = (
        math.fsum(sorted((_size(n, level / k) for n in n_pairs), reverse=True)[:k]) for k in range(1, len(n_pairs) + 1)
    )
    return min(level, max(sums))


def _size(n_pairs: int, level: float) -> float:
    """The chance of p <= level: with all 2^(n-1) patterns p is a whole number of them, or more where sums tie."""
    if n_pairs > MAX_EXACT:
        return level
    patterns = 2 ** (n_pairs - 1)
    return math.floor(level * patterns * (1 + 1e-12)) / patterns
