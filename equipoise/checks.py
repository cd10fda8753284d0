"""Checks of parameters and shapes, with one voice: what was expected, what came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

Counts = Sequence[int] | Tensor  # numpy arrays too: they are sequences in all that matters here


def number(name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return value


def at_least(name: str, value: Any, low: float) -> float:
    """A number ≥ low."""
    if number(name, value) < low:
        raise ValueError(f"{name} must be at least {low}, not {value!r}")
    return value


def above(name: str, value: Any, low: float) -> float:
    """A number > low."""
    if number(name, value) <= low:
        raise ValueError(f"{name} must be above {low}, not {value!r}")
    return value


def between(name: str, value: Any, low: float, high: float) -> float:
    """A number in [low, high]."""
    if not low <= number(name, value) <= high:
        raise ValueError(f"{name} must lie between {low} and {high}, not {value!r}")
    return value


def whole(name: str, value: Any, low: int = 0) -> int:
    """An integer ≥ low."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{name} must be a whole number, at least {low}, not {value!r}")
    return value


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of the words in `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def counts(value: Any, *, empty: bool = True, name: str = "class_counts") -> Tensor:
    """Images per class as a float64 tensor (C,); whole, not negative, not all zero.

    `empty=False` refuses a class without images, for methods whose formula divides by its count.
    """
    # numpy knows no default type or device, by which PyTorch would turn 70000.0 to infinity or keep nothing at all
    tensor = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value), device="cpu")
    if tensor.is_meta:
        raise ValueError(f"{name} is on the meta device, which keeps no numbers; give a list")
    if tensor.dim() != 1 or not len(tensor):
        raise ValueError(f"{name} must be one number for each class, not a value of shape {tuple(tensor.shape)}")
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise ValueError(f"{name} must be numbers of images, not {tensor.dtype}")
    tensor = tensor.detach().to("cpu", torch.float64)
    if not bool(torch.isfinite(tensor).all()) or bool((tensor < 0).any()) or bool((tensor != tensor.round()).any()):
        raise ValueError(f"{name} must be whole numbers of images, 0 or more, not {tensor.tolist()}")
    if not bool((tensor > 0).any()):
        raise ValueError(f"{name} says that no class has any image")
    if not empty and bool((tensor == 0).any()):
        missing = (tensor == 0).nonzero().flatten().tolist()
        raise ValueError(f"{name} is 0 for class {missing}, and this method divides by it; leave such classes out")
    return tensor


def logits_and_target(owner: str, logits: Tensor, target: Tensor, num_classes: int | None = None) -> None:
    """One batch: logits (N, C) floating, target (N,) whole numbers below C."""
    batch_shapes(owner, logits, target, num_classes)
    labels(owner, logits, target)


def batch_shapes(owner: str, logits: Tensor, target: Tensor, num_classes: int | None = None) -> None:
    """Shapes and types of one batch: logits (N, C) floating, target (N,) whole numbers."""
    if logits.dim() != 2 or not logits.is_floating_point():
        raise ValueError(f"{owner} expects floating logits of shape (N, C), got {logits.dtype} {tuple(logits.shape)}")
    if target.dim() != 1 or target.is_floating_point() or target.dtype == torch.bool:
        raise ValueError(
            f"{owner} expects labels of shape (N,), whole numbers, got {target.dtype} {tuple(target.shape)}"
        )
    rows, classes = logits.shape
    if rows != target.shape[0]:
        raise ValueError(f"{owner} got {rows} rows of logits and {target.shape[0]} labels")
    if num_classes is not None and classes != num_classes:
        raise ValueError(f"{owner} got logits with {classes} classes but class_counts of length {num_classes}")


def labels(owner: str, logits: Tensor, target: Tensor) -> None:
    """The values of `target` (N,), below C. Looked at on the CPU only; on a GPU that would wait for the device."""
    if target.is_cpu and len(target) and not torch.compiler.is_compiling():
        low, high = (int(label) for label in target.aminmax())
        classes = logits.shape[1]
        if low < 0 or high >= classes:
            bad = low if low < 0 else high
            raise ValueError(f"{owner} got label {bad}; with {classes} classes labels run from 0 to {classes - 1}")
