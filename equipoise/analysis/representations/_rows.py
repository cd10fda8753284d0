"""Rows of features in float64, some at a time, so that nothing the size of all of them is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

import torch
from torch import Tensor

from .._arrays import add_at
from .._kinds import double, features_of

VALUES = 2**19  # in one piece: 4 MB, which a cache holds


def rows_of(x: Tensor, name: str = "features") -> Tensor:
    """`features_of`, which looks at each value only if the least or the largest of them is not finite."""
    if x.dim() > 1 and x.numel() and bool(torch.stack(x.aminmax()).isfinite().all()):
        return x.flatten(1)
    return features_of(x, name)


def pieces(x: Tensor, rows: int | None = None) -> Iterator[Tensor]:
    """The rows of `x` (N, d) in order, in float64, `rows` at a time, or as many as make about `VALUES` values."""
    return map(double, x.split(rows or rows_at_once(x.shape[1])))


def rows_at_once(width: int) -> int:
    """How many rows of `width` values are taken at a time."""
    return max(1, VALUES // width)


def mean_row(x: Tensor) -> Tensor:
    """Mean of the rows of `x`: (N, d) -> (d,).

    Taken as x₀ + mean(x - x₀): rows that are all alike have that very row as their mean, with no rounding, and what is
    left after subtracting it is 0.
    """
    first = double(x[0])
    total = torch.zeros_like(first)
    for part in pieces(x):
        total += (part - first).sum(dim=0)
    return first + total / len(x)


def lengths(x: Tensor) -> Tensor:
    """Euclidean length of each row, in float64: (N, d) -> (N,)."""
    return torch.linalg.vector_norm(double(x), dim=1)


def unit_rows(x: Tensor) -> Tensor:
    """Each row divided by its length, in float64; rows of zeros stay zeros."""
    length = lengths(x)[:, None]
    return x / torch.where(length > 0, length, 1.0)


def sum_of_squares(parts: Iterable[Tensor]) -> Tensor:
    """Σ xᵀx over matrices x of some rows and d columns, added in float64: (d, d)."""
    return reduce(Tensor.add_, map(double, map(_square, parts)))


def _square(x: Tensor) -> Tensor:
    """xᵀx. Numpy sees that it is symmetric and asks BLAS for half of it, which torch does not."""
    return torch.from_numpy(x.numpy().T @ x.numpy()) if x.device.type == "cpu" else x.T @ x


def class_sums(values: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Sum of the values of each class, in float64: (N, ...) -> (C, ...)."""
    sums = torch.zeros(num_classes, *values.shape[1:], dtype=torch.float64, device=values.device)
    return add_at(sums, labels, double(values))
