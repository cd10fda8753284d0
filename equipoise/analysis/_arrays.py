"""Inputs of the analysis, checked in one place and with one voice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._kinds import Array, double, either_kind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def classes(name: str, value: Tensor, num_classes: int) -> Tensor:
    """Class indices (N,), each below `num_classes`."""
    index = whole_numbers(name, value)
    refuse_outside(name, int(index.min()), int(index.max()), num_classes)
    return index


def whole_numbers(name: str, value: Tensor) -> Tensor:
    """Class indices (N,) of whatever size: what can be told without a look at the values."""
    if value.dim() != 1 or not len(value):
        raise ValueError(f"{name} must be one class index for each sample, not a value of shape {tuple(value.shape)}")
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise ValueError(f"{name} must be whole numbers, not {value.dtype}")
    return value.long()


def refuse_outside(name: str, low: int, high: int, num_classes: int) -> None:
    """An error unless classes from `low` to `high` are among the `num_classes`."""
    if low < 0 or high >= num_classes:
        bad = low if low < 0 else high
        raise ValueError(f"{name} has class {bad}; with {num_classes} classes they run from 0 to {num_classes - 1}")


def predictions(pred: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Predicted and true classes, both (N,)."""
    p, y = classes("pred", pred, num_classes), classes("labels", labels, num_classes)
    if len(p) != len(y):
        raise ValueError(f"pred has {len(p)} samples and labels {len(y)}; both must be of the same samples")
    return p, y


def same_samples(logits: Tensor, labels: Tensor, name: str = "logits") -> Tensor:
    """The labels (N,) of logits (N, C): what can be told without a look at the values."""
    _table(logits, name)
    y = whole_numbers("labels", labels)
    if len(logits) != len(y):
        raise ValueError(f"got {len(logits)} rows of {name} and {len(y)} labels")
    return y


@either_kind
def logits_and_labels(logits: Array, labels: Array) -> tuple[Any, Any]:
    """Logits (N, C) and labels (N,), checked.

    A row needs a largest value that is finite: with NaN or +inf in it there is no prediction to judge, and counting
    it as some class would flatter a run that diverged. Single classes may be ruled out with -inf.
    """
    return logits, _looked_at(logits, labels, "logits")[0]


def _looked_at(logits: Tensor, labels: Tensor, name: str) -> tuple[Tensor, float, float]:
    """The labels, and the least and the largest of all logits."""
    y = same_samples(logits, labels, name)
    extremes = torch.stack([double(value) for value in (*logits.aminmax(), *y.aminmax())])
    low, high, first, last = extremes.tolist()
    refuse_outside("labels", int(first), int(last), logits.shape[1])
    if not (math.isfinite(low) and math.isfinite(high)):
        refuse_not_finite(name, int(not_finite(logits.amax(dim=1))), len(y))
    return y, low, high


def judged_rows(logits: Tensor) -> Tensor:
    """Logits (N, C) without labels, refused for the same reasons."""
    _table(logits, "logits")
    refuse_not_finite("logits", int(not_finite(logits.amax(dim=1))), len(logits))
    return logits


def _table(logits: Tensor, name: str) -> None:
    if logits.dim() != 2 or not logits.numel():
        raise ValueError(f"{name} must have shape (N, C), not {tuple(logits.shape)}")


def not_finite(top: Tensor) -> Tensor:
    """How many of the rows with largest values `top` (N,) cannot be judged."""
    return (~torch.isfinite(top)).sum()


def refuse_not_finite(name: str, bad: int, rows: int) -> None:
    """An error if any of the rows is bad."""
    if bad:
        raise ValueError(f"{name} are not finite in {bad} of {rows} rows; count such a run as failed")


def probabilities_and_labels(probs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities (N, C) in [0, 1] and labels (N,). What rounding put outside [0, 1] is brought back."""
    y, low, high = _looked_at(probs, labels, "probs")
    if not (low >= -1e-5 and high <= 1 + 1e-5):
        raise ValueError(f"probs must lie between 0 and 1, not {low:g} to {high:g}; are these logits?")
    return (probs.clamp(0, 1) if low < 0 or high > 1 else probs), y


@either_kind
def counts(class_counts: Array) -> Any:
    """Training images of each class (C,): whole numbers, 0 or more."""
    if class_counts.dim() != 1 or not len(class_counts):
        shape = tuple(class_counts.shape)
        raise ValueError(f"class_counts must be one number for each class, not a value of shape {shape}")
    n = double(class_counts)
    if not bool((torch.isfinite(n) & (n >= 0) & (n == n.round())).all()):
        raise ValueError(f"class_counts must be whole numbers of images, 0 or more, not {n.tolist()}")
    return n


def totals(index: Tensor, size: int, values: Tensor | None = None) -> Tensor:
    """Sums of `values` (N,), or numbers of samples, for each of `size` places that `index` (N,) names; float64.

    Not `bincount`, which on a GPU waits for the device.
    """
    given = torch.ones_like(index) if values is None else values
    return add_at(torch.zeros(size, dtype=torch.float64, device=index.device), index, double(given))


def add_at(sums: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """Add `values` (N, …) to those rows of `sums` that `index` (N,) names, in place and always in the same order."""
    if sums.is_cuda:  # where `index_add_` adds in any order
        return sums.index_put_((index,), values, accumulate=True)
    return sums.index_add_(0, index, values)


def host(value: Array) -> Floats:
    """Numbers of either kind as a numpy array in float64: scores of runs are few, and are judged there."""
    return np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value).astype(np.float64)


def finite(name: str, values: Array) -> Floats:
    """Finite numbers (n,); n may be 0."""
    array = host(values)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a row of finite numbers, not {array.tolist()}; leave missing runs out")
    return array


def inside(name: str, value: float) -> float:
    """A number between 0 and 1, neither of them."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, not {value!r}")
    return value
