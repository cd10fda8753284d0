"""How far the classes stand apart in a representation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core import checks
from .._arrays import add_at
from .._kinds import Array, as_tensor, double, either_kind, labels_of, to_numpy
from ._rows import lengths, mean_row, pieces, rows_at_once, rows_of, unit_rows

DISTANCES = ("cosine", "centered_cosine", "euclidean")
ROUNDING = 1e-24  # mean squared distances below this share of the squared length of a row are rounding


@either_kind
def class_separation(features: Array, labels: Array, metric: str = "cosine") -> Any:
    r"""One minus mean distance within classes over mean distance between any two samples: from 0 to 1.

    .. math:: R^2 = 1 - \frac{\frac1K \sum_k \frac{1}{N_k^2} \sum_{m,n} d(x_{k,m}, x_{k,n})}
        {\frac{1}{K^2} \sum_{j,k} \frac{1}{N_j N_k} \sum_{m,n} d(x_{j,m}, x_{k,n})}

    Classes count the same whatever their size, and a sample is paired with itself too, as in the paper. No pairs are
    formed: with m_k the mean of class k (of unit vectors for the cosine) and means over classes,
    :math:`R^2 = \overline{\|m_k - \bar m\|^2} \, / \, (\overline{\|x\|^2} - \|\bar m\|^2)`, in O(N d) time and O(K d)
    memory.

    Args:
        features: (N, d) of any layer; maps (N, c, h, w) are flattened.
        labels: (N,). Classes without samples are left out.
        metric: d. "cosine" is 1 - cos(x, y); "centered_cosine" the same after the mean of all samples is subtracted;
            "euclidean" the squared Euclidean distance.

    A row of zeros has cosine 0 with every row, itself included. With one class, or if all rows are alike, nothing
    stands apart: 0.

    >>> class_separation([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [0, 0, 1])
    1.0
    >>> class_separation([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0, 0, 1, 1])
    0.0

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? NeurIPS
    2021.
    """
    checks.one_of("metric", metric, DISTANCES)
    x = rows_of(features)
    classes, y = labels_of(labels, len(x)).unique(return_inverse=True)
    separation = ClassSeparation(len(classes), metric, mean_row(x) if metric == "centered_cosine" else None)
    separation._add(x, y.to(x.device))
    return separation._value()


class ClassSeparation:
    """`class_separation` of data that comes in batches; holds one row of sums for each class.

    Args:
        num_classes: C; labels run from 0 to C - 1.
        metric: as in `class_separation`.
        mean: of all features (d,), which "centered_cosine" must know beforehand, from an earlier pass.

    >>> separation = ClassSeparation(num_classes=2, metric="euclidean")
    >>> separation.update([[0.0], [1.0]], [0, 0])
    >>> separation.update([[4.0], [5.0]], [1, 1])
    >>> round(separation.compute(), 4)
    0.9412
    """

    def __init__(self, num_classes: int, metric: str = "cosine", mean: Array = None) -> None:
        self.num_classes = checks.whole("num_classes", num_classes, 1)
        self.metric = checks.one_of("metric", metric, DISTANCES)
        if (mean is not None) != (metric == "centered_cosine"):
            needs = "needs the mean of all features" if mean is None else "takes no mean"
            raise ValueError(f"metric {metric!r} {needs}")
        self.mean = None if mean is None else double(as_tensor(mean)).flatten()
        self.origin: Tensor | None = None
        self.tensors = False

    def update(self, features: Array, labels: Array) -> None:
        """Add a batch: features (N, d) or (N, c, h, w), labels (N,)."""
        self.tensors |= isinstance(features, Tensor)
        x = rows_of(as_tensor(features))
        y = labels_of(as_tensor(labels), len(x), self.num_classes).to(x.device)
        self._add(x, y)

    def compute(self) -> Any:
        """R² of all batches so far: a 0-d tensor if they came as tensors, else a float."""
        return self._value() if self.tensors else to_numpy(self._value())

    def _add(self, x: Tensor, y: Tensor) -> None:
        for part, labels in zip(pieces(x), y.split(rows_at_once(x.shape[1])), strict=True):
            points, lone = self._points(part)
            origin = self._start(points[0].clone()) if self.origin is None else self.origin
            if len(origin) != x.shape[1]:
                raise ValueError(f"earlier batches had {len(origin)} features, this one has {x.shape[1]}")
            moved = points - origin  # distances stay, and sums of squares do not cancel
            add_at(self.sums, labels, moved)
            add_at(self.squares, labels, moved.square().sum(dim=1) + lone)
            self.counts += torch.bincount(labels, minlength=self.num_classes)

    def _points(self, part: Tensor) -> tuple[Tensor, Tensor]:
        """Points p and numbers l such that d(x, y) is |p(x) - p(y)|² + l(x) + l(y), but for a factor.

        Of unit vectors 1 - cos is half of |p - q|². A row of zeros is at 1 from all: |0 - q|² + 1 = |0 - 0|² + 1 + 1.
        """
        if self.metric == "euclidean":
            return part, part.new_zeros(len(part))
        points = unit_rows(part if self.mean is None else part - self.mean.to(part.device))
        return points, (lengths(points) == 0).double()

    def _start(self, origin: Tensor) -> Tensor:
        self.origin = origin
        self.sums = torch.zeros(self.num_classes, len(origin), dtype=torch.float64, device=origin.device)
        self.squares, self.counts = self.sums.new_zeros(self.num_classes), self.sums.new_zeros(self.num_classes)
        return origin

    def _value(self) -> Tensor:
        if self.origin is None:
            raise ValueError("there are no features yet; call update first")
        n = self.counts[self.counts > 0]
        means = self.sums[self.counts > 0] / n[:, None]
        centre = means.mean(dim=0)
        between = (means - centre).square().sum(dim=1).mean()
        total = (self.squares[self.counts > 0] / n).mean() - centre.square().sum()
        spread = total > ROUNDING * self.origin.square().sum()
        return torch.where(spread, between / total, 0.0).clamp(0, 1)
