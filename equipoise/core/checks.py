"""Checks of parameters and shapes, with one voice: what was expected, what came."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .words import counted, is_readable, shown

Counts = Sequence[int] | Tensor  # numpy arrays too: they are sequences in all that matters here


def number(name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise ValueError(f"{name} must be a finite number, not {shown(value)}")
    return value


def _is_finite(value: float) -> bool:
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)  # PyTorch holds no larger one


def at_least(name: str, value: Any, low: float) -> float:
    """A number ≥ low."""
    if number(name, value) < low:
        raise ValueError(f"{name} must be at least {low}, not {shown(value)}")
    return value


def above(name: str, value: Any, low: float) -> float:
    """A number > low."""
    if number(name, value) <= low:
        raise ValueError(f"{name} must be above {low}, not {shown(value)}")
    return value


def between(name: str, value: Any, low: float, high: float) -> float:
    """A number in [low, high]."""
    if not low <= number(name, value) <= high:
        raise ValueError(f"{name} must lie between {low} and {high}, not {shown(value)}")
    return value


def whole(name: str, value: Any, low: int = 0, high: int = 2**63 - 1) -> int:
    """An integer from low to high."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{name} must be a whole number, at least {low}, not {shown(value)}")
    if value > high:
        raise ValueError(f"{name} must be at most {high:,}, not {shown(value)}")
    return value


def truth(name: str, value: Any) -> bool:
    """True or False; nothing that Python takes for one of them."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {shown(value)}")
    return value


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of the words in `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {shown(value)}")
    return value


def text(name: str, value: Any, longest: int = 1_000) -> str:
    """Text without characters that steer a terminal, or end a path."""
    if not isinstance(value, str) or not is_readable(value):
        raise ValueError(f"{name} must be printable text, not {shown(value)}")
    if len(value) > longest:
        raise ValueError(f"{name} must have at most {longest:,} characters; {shown(value, 20)} has {len(value):,}")
    return value


def title(name: str, value: Any, longest: int = 100) -> str:
    """A line of text to call something by: not empty, nothing in it that steers a terminal."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be text that is not empty, not {shown(value)}")
    if text(name, value, longest) != value.strip():
        raise ValueError(f"{name} must have no space at its ends, not {shown(value)}")
    return value


def file_name(name: str, value: Any) -> str:
    """A title that can be a folder's name on any system, and of no folder but the one it names."""
    title(name, value)
    strange = sorted({c for c in value if not is_in_file_names(c)})
    if strange or value.startswith("."):
        which = "a dot in front" if value.startswith(".") else " ".join(strange)
        raise ValueError(f"{name} may have letters, digits, spaces and . _ - + ( ), not {which}, as {shown(value)} has")
    size = len(value.encode())
    if size > _LONGEST_FILE_NAME:
        raise ValueError(f"{name} is too long for a folder: {counted(size, 'byte')}, at most {_LONGEST_FILE_NAME}")
    return value


_LONGEST_FILE_NAME = 200  # bytes; file systems have 255, and names grow endings such as _tuned


def is_in_file_names(character: str) -> bool:
    """Whether `file_name` allows it: letters of any script with their accents, digits, and a few marks."""
    return unicodedata.category(character)[0] in "LMN" or character in " ._-+()\u200c\u200d"


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
    if isinstance(rows, Tensor):  # in `torch.jit.trace`, where to compare sizes would fix them
        return
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
