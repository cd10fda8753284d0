"""How hard a sample is, by the angle between its feature and the weights of the classes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._kinds import Array, either_kind, labels_of
from ..representations._rows import pieces, rows_at_once, rows_of, unit_rows

SMALLEST_ANGLE = 1e-7  # the arccos of 1 - 5e-15


@either_kind
def angular_visual_hardness(features: Array, weight: Array, labels: Array) -> Any:
    r"""Angle to the weight of the true class, as a share of the angles to all: (N, d), (C, d), (N,) -> (N,).

    .. math:: \mathrm{AVH}(x) = \frac{\angle(x, w_y)}{\sum_k \angle(x, w_k)}, \qquad
        \angle(x, w) = \arccos \frac{x^\top w}{\|x\| \, \|w\|}

    About 1 / C, and lower for samples that are easy. Biases play no part. A feature or weight of zeros is at a right
    angle to all. Where all angles are 0 (below 1e-7 on average: arccos has no more digits there), which only weights of
    one direction allow, each class has the same share, 1 / C.

    >>> angular_visual_hardness([[2.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 3.0]], [0, 1])
    array([0. , 0.5])

    Reference: Chen, Liu, Yu, Kautz, Shrivastava, Garg, Anandkumar. Angular Visual Hardness. ICML 2020.
    """
    x, w = rows_of(features), rows_of(weight, "weight")
    if x.shape[1] != w.shape[1]:
        raise ValueError(f"features have width {x.shape[1]} and weight {w.shape[1]}; both must have the same")
    y = labels_of(labels, len(x), len(w)).to(x.device)
    directions = unit_rows(w).to(x.device)
    rows = rows_at_once(max(w.shape))  # of features and of angles alike
    parts = zip(pieces(x, rows), y.split(rows), strict=True)
    return torch.cat([_share(unit_rows(part) @ directions.T, labels) for part, labels in parts])


def _share(cosines: Tensor, labels: Tensor) -> Tensor:
    """(N, C), (N,) -> (N,). The division is of two (N,): one (N, 1) among them would make it (N, N)."""
    angles = cosines.clamp(-1, 1).arccos()
    own, total = angles.gather(1, labels[:, None]).squeeze(1), angles.sum(dim=1)
    num_classes = cosines.shape[1]
    return torch.where(total > num_classes * SMALLEST_ANGLE, own / total, 1 / num_classes)
