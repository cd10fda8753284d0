"""Singular values of features, of final weights and of class centroids."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._arrays import add_at
from .._kinds import Array, double, either_kind, labels_of
from ._rows import mean_row, pieces, rows_at_once, rows_of, sum_of_squares

TALL = 4  # rows for each column, from which on the product of the columns is worth its making
FAITHFUL = 1e-10  # least eigenvalue over the largest for which the roots of both have 6 right digits in float64


@either_kind
def singular_values(x: Array, centered: bool = False, scaled: bool = False) -> Any:
    r"""Singular values of a matrix x (N, d), the largest first: min(N, d) of them. Maps are flattened.

    Of features, of the final layer's weight (C, d), or of `class_centroids`. The paper does not say whether it centred
    or scaled; so neither is done unless asked.

    Args:
        centered: subtract the mean of the rows first; the squares over N are then the variances along the principal
            components.
        scaled: divide by the largest, so that spectra of unlike size and number of samples can be laid together. All
            stay 0 if the largest is.

    Many rows cost one pass: the values are the roots of the eigenvalues of :math:`X^\top X`. Where these reach down to
    where squaring loses digits, a QR decomposition takes its place.

    >>> singular_values([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    array([4., 3.])

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? NeurIPS
    2021, figure E.2.
    """
    rows = rows_of(x, "x")
    mean = mean_row(rows) if centered else double(rows.new_zeros(rows.shape[1]))
    if len(rows) < TALL * rows.shape[1]:
        values = torch.linalg.svdvals(double(rows) - mean)
    else:
        values = _of_many_rows(rows, mean)
    return values / torch.where(values[0] > 0, values[0], 1.0) if scaled else values


@either_kind
def class_centroids(features: Array, labels: Array) -> Any:
    """Mean feature of each class that has samples, in order of class: (N, d), (N,) -> (K, d). Maps are flattened.

    >>> class_centroids([[1.0, 0.0], [3.0, 0.0], [5.0, 6.0]], [0, 0, 7])
    array([[2., 0.],
           [5., 6.]])
    """
    x = rows_of(features)
    present, y, counts = labels_of(labels, len(x)).unique(return_inverse=True, return_counts=True)
    sums = torch.zeros(len(present), x.shape[1], dtype=torch.float64, device=x.device)
    for part, part_labels in zip(pieces(x), y.to(x.device).split(rows_at_once(x.shape[1])), strict=True):
        add_at(sums, part_labels, part)
    return sums / counts.to(x.device)[:, None]


def _of_many_rows(rows: Tensor, mean: Tensor) -> Tensor:
    squares = torch.linalg.eigvalsh(sum_of_squares(part - mean for part in pieces(rows))).flip(0)
    if squares[-1] > FAITHFUL * squares[0]:
        return squares.sqrt()
    return torch.linalg.svdvals(torch.linalg.qr(double(rows) - mean, mode="r").R)
