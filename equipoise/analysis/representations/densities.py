"""Densities of numbers: of the distances between samples, within classes and between them, and of any scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...core import checks
from .._kinds import Array, double, either_kind, labels_of
from ._rows import rows_at_once, rows_of, unit_rows


@dataclass(frozen=True)
class CosineDistances:
    """How the cosine distances between samples are distributed, over equal bins from 0 to 2.

    The densities integrate to 1 and are exact counts of pairs; NaN where there is no pair.
    """

    edges: Array  # (B + 1,)
    within: Array  # (B,) density of distances between two samples of one class
    between: Array  # (B,) of two classes
    pairs_within: int
    pairs_between: int
    samples: int

    @property
    def centers(self) -> Any:
        """Middles of the bins (B,), at which `kernel_density` takes `within` or `between` as weights."""
        return (self.edges[1:] + self.edges[:-1]) / 2


@either_kind
def cosine_distances(
    features: Array, labels: Array, bins: int = 200, samples: int = 10_000, seed: int = 0
) -> CosineDistances:
    """Distribution of 1 - cos(x, y) over all pairs of two samples: features (N, d), labels (N,). Maps are flattened.

    A bin holds its lower edge; the last one 2 as well. A row of zeros is at distance 1 from every other.

    Args:
        bins: B, of equal width.
        samples: with more than these, so many are drawn without replacement; the paper's number. Of n samples
            n(n - 1) / 2 distances are counted, some rows at a time.
        seed: of that draw.

    >>> found = cosine_distances([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [0, 0, 1], bins=4)
    >>> found.within, found.between
    (array([2., 0., 0., 0.]), array([0., 0., 2., 0.]))

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? NeurIPS
    2021, figure E.3.
    """
    checks.whole("bins", bins, 1)
    checks.whole("samples", samples, 2)
    x = rows_of(features)
    y = labels_of(labels, len(x)).to(x.device)
    if len(x) > samples:
        generator = torch.Generator("cpu").manual_seed(seed)
        chosen = torch.randperm(len(x), generator=generator, device="cpu")[:samples].to(x.device)
        x, y = x[chosen], y[chosen]
    between, within = _counts(unit_rows(x), y, bins).view(2, bins)
    edges = torch.linspace(0, 2, bins + 1, dtype=torch.float64, device=x.device)
    pairs = int(within.sum()), int(between.sum())
    return CosineDistances(edges, _density(within), _density(between), *pairs, len(x))


@either_kind
def kernel_density(values: Array, at: Array, bandwidth: float, weights: Array = None) -> Any:
    r"""Gaussian estimate of the density of values (N,) at the points `at` (G,): (G,).

    .. math:: f(t) = \frac{1}{h \sqrt{2 \pi} \sum_i w_i} \sum_i w_i \exp\Big(-\frac{(t - v_i)^2}{2 h^2}\Big)

    Args:
        bandwidth: h. The loss paper takes 5e-6 for the angular visual hardness of 1000 classes.
        weights: w (N,), not negative, 1 each if not given.

    >>> kernel_density([0.0, 1.0], [0.0], bandwidth=0.1).round(4)
    array([1.9947])
    """
    h = checks.above("bandwidth", bandwidth, 0)
    v, t = _row("values", values), _row("at", at)
    w = torch.ones_like(v) if weights is None else _row("weights", weights)
    if len(w) != len(v) or bool((w < 0).any()) or not bool(w.sum() > 0):
        raise ValueError("weights must be one for each value, none below 0 and not all 0")
    total = torch.zeros_like(t)
    for part, part_w in zip(*(z.split(rows_at_once(len(t))) for z in (v, w)), strict=True):
        total += torch.exp(-((t[:, None] - part) / h).square() / 2) @ part_w
    return total / (h * math.sqrt(2 * math.pi) * w.sum())


def _counts(unit: Tensor, labels: Tensor, bins: int) -> Tensor:
    """Pairs of two samples in each bin, those of two classes first, then those of one: (2 B,)."""
    counts = torch.zeros(2 * bins, dtype=torch.int64, device=unit.device)
    for start in range(0, len(unit), rows := rows_at_once(len(unit))):
        block, own = unit[start : start + rows], labels[start : start + rows]
        distances = 1 - block @ unit[start:].T
        code = (distances * (bins / 2)).long().clamp_(0, bins - 1) + bins * (own[:, None] == labels[start:])
        later = torch.ones_like(code, dtype=torch.bool).triu(1)  # each pair once, and no sample with itself
        counts += torch.bincount(torch.where(later, code, 2 * bins).flatten(), minlength=2 * bins + 1)[:-1]
    return counts


def _density(counts: Tensor) -> Tensor:
    return double(counts) / (counts.sum() * (2 / len(counts)))


def _row(name: str, values: Tensor) -> Tensor:
    if values.dim() != 1 or not len(values) or not bool(torch.isfinite(values).all()):
        raise ValueError(f"{name} must be a row of finite numbers, not a value of shape {tuple(values.shape)}")
    return double(values)
