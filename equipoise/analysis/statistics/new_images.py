"""What differences on one test set say of new images of the same kind: seeds and images are both drawn by chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from .._arrays import Floats, Ints, inside


@dataclass(frozen=True)
class ImageScores:
    """What a score is made of: the value of each test image (N,), for every run of every method.

    The score of a run is Σ_c shares[c] · mean value of the images of stratum c. For accuracy all images are one
    stratum, because new images will not have the same class frequencies; where each class has a fixed share, as in
    balanced accuracy, a stratum is a class. `values` has an entry for each seed, None for a run that is not there.
    """

    values: Mapping[str, Sequence[Floats | None]]
    strata: Ints
    shares: Floats

    def differences(self, name: str, other: str, there: Sequence[bool]) -> Floats:
        """Value minus the other method's (pairs, N), of those seeds that are `there` and have both runs."""
        pairs = zip(self.values[name], self.values[other], there, strict=True)
        rows = [a - b for a, b, kept in pairs if kept and a is not None and b is not None]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.strata))


class Parts(NamedTuple):
    """Where the variance of a mean difference comes from, and how well that is known.

    `seeds` is what more seeds would take away, `images` what only more test images would; their sum is the variance for
    new seeds and new images, known with `freedom` degrees of freedom. Each may be an array, an entry for each study.
    """

    mean: Floats
    seeds: Floats
    images: Floats
    freedom: Floats

    @property
    def total(self) -> Floats:
        return self.seeds + self.images


class NewImages(NamedTuple):
    """The interval of a difference for new images of this kind, the p-value of "no difference there", and its limits.

    `by_images` says that the number of test images limits the interval more than the number of seeds does, and
    `at_best` is the half width that would be left with any number of seeds. The interval is Student's t of the
    difference, which is `low` to `high`, with its standard `error` and degrees of `freedom`.
    """

    low: float
    high: float
    p: float
    by_images: bool = False
    at_best: float = 0.0
    error: float = 0.0
    freedom: float = math.inf

    def p_equal(self, within: float) -> float:
        """The larger p-value of two one-sided t-tests of "the difference is `within` or more away from 0"."""
        space = within - abs(self.low + self.high) / 2
        return float(special.stdtr(self.freedom, -space / self.error)) if self.error else float(space <= 0)


LEAST_SEEDS = 3  # with two, simulated intervals hold the truth in 89 % of studies instead of 95 %
NOT_KNOWN = NewImages(math.nan, math.nan, math.nan, at_best=math.nan, error=math.nan)


def variance_parts(differences: Floats, strata: Ints, shares: Floats) -> Parts:
    r"""Split the variance of a mean difference by seeds and images: differences (…, S, N), one stratum for each image.

    .. math:: d_{si} = \mu_c + a_{sc} + t_i + e_{si}, \qquad \hat\theta = \sum_c \pi_c \bar d_c, \qquad
              \operatorname{Var} \hat\theta = \frac{V_S}{S} + V_I - V_E

    V_S is the variance of the S scores :math:`\sum_c \pi_c \bar d_{sc}`. V_I = Σ π_c² / n_c · (variance of the images'
    means over seeds), V_E = Σ π_c² / n_c · (mean square of interaction) / S, which the two others both contain: where
    one of them is below V_E, it is taken for V_E. The degrees of freedom are Satterthwaite's of those that enter, and
    at least those of the S scores. A stratum of one image has the variance of the others together. NaN: no stratum of
    two images; for the degrees of freedom, also no variance at all.

    Reference: Searle, Casella, McCulloch. Variance Components. 1992.
    """
    order = np.argsort(strata, kind="stable")
    present, starts, n = np.unique(strata[order], return_index=True, return_counts=True)
    pi, seeds = shares[present] / shares[present].sum(), differences.shape[-2]
    d = differences[..., order]

    def per_stratum(x: Floats) -> Floats:
        return np.asarray(np.add.reduceat(x, starts, axis=-1))

    of_image, of_stratum = d.mean(axis=-2), per_stratum(d) / n
    centre = of_stratum.mean(axis=-2)
    between = per_stratum(of_image**2) - n * centre**2
    all_squares, of_seeds = per_stratum((d**2).sum(axis=-2)), n * (of_stratum**2).sum(axis=-2)
    within = all_squares - of_seeds - seeds * between  # what neither the seed's mean nor the image's explains
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = pi**2 / n
        image_terms = weights * _mean_squares(between, n - 1)
        rest_terms = weights * _mean_squares(within, (seeds - 1) * (n - 1)) / seeds
        v_seeds = (of_stratum @ pi).var(axis=-1, ddof=1) / seeds
        v_images, v_rest = image_terms.sum(axis=-1), rest_terms.sum(axis=-1)
        by_seeds, by_images = v_seeds > v_rest, v_images > v_rest
        # squares of estimates with f degrees of freedom are (f + 2) / f times too large, which counts in sums of many
        doubt = by_seeds * v_seeds**2 / (seeds - 1) + by_images * (image_terms**2 / (n + 1)).sum(axis=-1)
        both_or_none = by_seeds == by_images  # V_E enters as V_S + V_I - V_E, or alone
        doubt += both_or_none * (rest_terms**2 / ((seeds - 1) * (n - 1) + 2)).sum(axis=-1)
        total = np.maximum(v_seeds, v_rest) + np.maximum(v_images - v_rest, 0)
        freedom = np.maximum(total**2 / np.where(doubt > 0, doubt, np.nan), min(seeds - 1, n.sum() - len(n)))
    return Parts(centre @ pi, np.maximum(v_seeds, v_rest), np.maximum(v_images - v_rest, 0), freedom)


def _mean_squares(squares: Floats, freedom: Ints) -> Floats:
    """Squares (…, C) over their degrees of freedom; where there are none, those of all strata together."""
    together = squares.sum(axis=-1, keepdims=True) / freedom.sum()
    return np.where(freedom > 0, np.clip(squares, 0, None) / np.where(freedom > 0, freedom, 1), together)


def new_images(differences: Floats, strata: Ints, shares: Floats, confidence: float = 0.95) -> NewImages:
    """The interval of a mean difference for new seeds and new images, by Student's t on `variance_parts`.

    Fewer than `LEAST_SEEDS` seeds tell too little of themselves.

    >>> better = np.array([[0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0]])
    >>> found = new_images(better, strata=np.zeros(6, int), shares=np.ones(1))
    >>> round(found.low, 2), round(found.high, 2), found.by_images
    (-0.1, 0.65, True)
    """
    inside("confidence", confidence)
    if len(differences) < LEAST_SEEDS:
        return NOT_KNOWN
    parts = variance_parts(np.asarray(differences, dtype=np.float64), np.asarray(strata), np.asarray(shares, float))
    mean, total, freedom = float(parts.mean), float(parts.total), float(parts.freedom)
    if math.isnan(total):
        return NOT_KNOWN
    if not total:
        return NewImages(mean, mean, float(mean == 0))
    error, reach = math.sqrt(total), float(special.stdtrit(freedom, (1 + confidence) / 2))
    return NewImages(
        low=mean - reach * error,
        high=mean + reach * error,
        p=float(2 * special.stdtr(freedom, -abs(mean) / error)),
        by_images=bool(parts.images > parts.seeds),
        at_best=reach * math.sqrt(float(parts.images)),
        error=error,
        freedom=freedom,
    )
