"""Inputs of the analysis as numpy arrays, checked in one place and with one voice."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def classes(name: str, value: ArrayLike, num_classes: int) -> Ints:
    """Class indices (N,), each below `num_classes`."""
    array = np.asarray(value)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be one class index for each sample, not a value of shape {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be whole numbers, not {array.dtype}")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= num_classes:
        bad = low if low < 0 else high
        raise ValueError(f"{name} has class {bad}; with {num_classes} classes they run from 0 to {num_classes - 1}")
    return array.astype(np.int64, copy=False)


def predictions(pred: ArrayLike, labels: ArrayLike, num_classes: int) -> tuple[Ints, Ints]:
    """Predicted and true classes, both (N,)."""
    p, y = classes("pred", pred, num_classes), classes("labels", labels, num_classes)
    if len(p) != len(y):
        raise ValueError(f"pred has {len(p)} samples and labels {len(y)}; both must be of the same samples")
    return p, y


def logits_and_labels(logits: ArrayLike, labels: ArrayLike, name: str = "logits") -> tuple[Floats, Ints]:
    """Logits (N, C) in float64 and labels (N,).

    A row needs a largest value that is finite: with NaN or +inf in it there is no prediction to judge, and counting
    it as some class would flatter a run that diverged. Single classes may be ruled out with -inf.
    """
    z = np.asarray(logits).astype(np.float64, copy=False)
    if z.ndim != 2 or not z.size:
        raise ValueError(f"{name} must have shape (N, C), not {z.shape}")
    y = classes("labels", labels, z.shape[1])
    if len(z) != len(y):
        raise ValueError(f"got {len(z)} rows of {name} and {len(y)} labels")
    bad = int((~np.isfinite(z.max(axis=1))).sum())
    if bad:
        raise ValueError(f"{name} are not finite in {bad} of {len(z)} rows; count such a run as failed")
    return z, y


def probabilities_and_labels(probs: ArrayLike, labels: ArrayLike) -> tuple[Floats, Ints]:
    """Probabilities (N, C) in [0, 1] and labels (N,). What rounding put outside [0, 1] is brought back."""
    p, y = logits_and_labels(probs, labels, "probs")
    if p.min() < -1e-5 or p.max() > 1 + 1e-5:
        raise ValueError(f"probs must lie between 0 and 1, not {p.min():g} to {p.max():g}; are these logits?")
    return p.clip(0, 1), y


def counts(class_counts: ArrayLike) -> Floats:
    """Training images of each class (C,): whole numbers, 0 or more."""
    n = np.asarray(class_counts).astype(np.float64)
    if n.ndim != 1 or not len(n):
        raise ValueError(f"class_counts must be one number for each class, not a value of shape {n.shape}")
    if not (np.isfinite(n) & (n >= 0) & (n == n.round())).all():
        raise ValueError(f"class_counts must be whole numbers of images, 0 or more, not {n.tolist()}")
    return n


def finite(name: str, values: ArrayLike) -> Floats:
    """Finite numbers (n,); n may be 0."""
    array = np.asarray(values).astype(np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a row of finite numbers, not {array.tolist()}; leave missing runs out")
    return array
