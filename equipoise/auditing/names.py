"""Groups that file names tell of: `00012_00003.ppm` may be the third frame of the twelfth film.

A pattern is proposed only if it makes sense: more groups of several images than classes, most images in one of them,
and images of one group more alike than other images of their class.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .duplicates import Cluster
from .listing import Item, group_name

# of two patterns that make sense, the first is proposed
PATTERNS = (
    r"(.+)/[^/]+$",  # a folder in the folder of a class
    r"(.+)_[0-9]+",  # all before the last number
    r"(.+)-[0-9]+",
    r"(.*[0-9])[^0-9/]+[0-9]+[^0-9/]*$",
    r"(.*/[^/_.-]+)[_.-]",  # the first word
)
COVERED = 0.5  # share of images that are in groups of several
SAMPLE = 4000  # pairs that are compared
CLEARLY = 0.7  # chance that images of one group are more alike than images of two
CONCENTRATED = 0.8  # share of near-duplicates that must be inside groups
ENOUGH = 5  # near-duplicates


@dataclass(frozen=True)
class Proposal:
    """A pattern for ``group = …``, and why it makes sense."""

    pattern: str
    groups: int
    more_alike: float
    near_duplicates_inside: float | None

    @property
    def reason(self) -> str:
        share = f"{100 * self.more_alike:.0f} %"
        words = f"With a chance of {share} two images of a group are more alike than two of one class and two groups"
        if self.near_duplicates_inside is None:
            return words
        return f"{words}, and {100 * self.near_duplicates_inside:.0f} % of near-duplicates lie inside one group"


def propose(items: Sequence[Item], views: NDArray[np.uint8], clusters: Sequence[Cluster]) -> Proposal | None:
    """The first pattern that makes sense, if there is one. `items` are those that could be read."""
    labels = np.array([item.label for item in items])
    folders = len({(item.part, item.label) for item in items})  # a name that only repeats these tells nothing new
    for pattern in PATTERNS:
        named = [group_name(item.name, re.compile(pattern)) for item in items]
        keys = [key or item.name for key, item in zip(named, items, strict=True)]
        _, groups, sizes = np.unique(keys, return_inverse=True, return_counts=True)
        several = int((sizes > 1).sum())
        if several <= folders or sizes[sizes > 1].sum() < COVERED * len(items):
            continue
        more_alike = _more_alike(views, groups, labels)
        inside = _inside(clusters, [g if key else None for key, g in zip(named, groups.tolist(), strict=True)])
        if more_alike >= CLEARLY and (inside is None or inside >= CONCENTRATED):
            return Proposal(pattern, several, more_alike, inside)
    return None


def _more_alike(views: NDArray[np.uint8], groups: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """The chance that a pair of one group is more alike than a pair of one class and two groups; 1/2 by luck."""
    rng = np.random.Generator(np.random.PCG64(0))
    one, other = rng.integers(len(groups), size=(2, 20 * SAMPLE))
    apart = np.flatnonzero((groups[one] != groups[other]) & (labels[one] == labels[other]))[:SAMPLE]
    order = np.lexsort((rng.random(len(groups)), groups))
    beside = np.flatnonzero(groups[order[1:]] == groups[order[:-1]])  # neighbours in this order
    beside = beside[rng.random(len(beside)).argsort()[:SAMPLE]]
    if not len(apart) or not len(beside):
        return 0.0
    inside, outside = _likeness(views, order[beside], order[beside + 1]), _likeness(views, one[apart], other[apart])
    below = np.searchsorted(np.sort(outside), inside)
    return float(below.mean() / len(outside))


def _likeness(views: NDArray[np.uint8], a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float32]:
    x, y = (_standard(views[rows]) for rows in (a, b))
    return np.einsum("nd,nd->n", x, y)


def _standard(views: NDArray[np.uint8]) -> NDArray[np.float32]:
    flat = views.reshape(len(views), -1).astype(np.float32)
    flat -= flat.mean(1, keepdims=True)
    scaled: NDArray[np.float32] = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6)
    return scaled


def _inside(clusters: Sequence[Cluster], groups: Sequence[int | None]) -> float | None:
    """The share of near-duplicates that lie in one group; None where they are too few to say.

    Copies whose names tell of no group, such as `copy of x.jpg`, say nothing against the groups of the others.
    """
    told = [[groups[i] for i in cluster.members if groups[i] is not None] for cluster in clusters]
    several = [each for each in told if len(each) > 1]
    return float(np.mean([len(set(each)) == 1 for each in several])) if len(several) >= ENOUGH else None
