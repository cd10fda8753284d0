"""The kernels of the losses: each sample's value, or their mean or sum, and the slope of the logits, in one call."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_float, c_int64, c_uint32, c_void_p
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

from . import floats, library

_ALWAYS: list[Any] = (
    [c_int64] * 2 + [c_void_p] * 2 + [c_float] + [c_void_p] * 3
)  # n, c, z, y, share, values, slope, total
_ARGUMENTS: dict[str, list[Any]] = {
    # scale, shift, at_label, rare, seeds, left_out, tau, smooth, gamma
    "softmax": [c_void_p] * 5 + [c_uint32] + [c_float] * 3,
    "sigmoid": [c_float],  # gamma
    "squared": [c_float] * 3,  # kappa, magnitude, scale
}

OF_CLASSES = frozenset({"scale", "shift", "at_label", "rare"})  # options that are numbers of the classes, (C,)

Slope = tuple[Tensor, Tensor]
Kernel = Callable[..., Slope]  # logits, target, reduction, and options of its own -> value, slope of the logits


def softmax_loss(
    logits: Tensor,
    target: Tensor,
    reduction: str,
    *,
    scale: Tensor | float | None = None,
    shift: Tensor | None = None,
    at_label: Tensor | None = None,
    rare: Tensor | None = None,
    seeds: Tensor | None = None,
    left_out: float = 0.0,
    tau: float = 0.0,
    alpha: float = 0.0,
    gamma: float = 0.0,
) -> Slope:
    """Cross-entropy of u = `scale` · z + `shift`, at the label + `at_label`, or what the others make of it.

    `rare` classes are left out so often, drawn by a row's seed; `tau` brings z to length 1 / tau; `alpha` smooths the
    labels; `gamma` is focal loss's.
    """
    classes = logits.shape[1]
    if scale is not None and not isinstance(scale, Tensor):
        scale = _for_each_class(scale, classes)
    each_class = [t if t is None else _of_classes(t, classes) for t in (scale, shift, at_label, rare)]
    pointers = [t if t is None else t.data_ptr() for t in (*each_class, seeds)]
    smooth = alpha / (1 - alpha)
    return _call("softmax", logits, target, reduction, *pointers, int(left_out * 2**24), tau, smooth, gamma)


def sigmoid_loss(logits: Tensor, target: Tensor, reduction: str, *, gamma: float = 0.0) -> Slope:
    """Sigmoid cross-entropy, with `gamma` sigmoid focal loss, summed over classes."""
    return _call("sigmoid", logits, target, reduction, gamma)


def squared_loss(
    logits: Tensor,
    target: Tensor,
    reduction: str,
    *,
    kappa: float,
    magnitude: float,
    loss_scale: float,
    per_class: bool,
) -> Slope:
    """Squared error from `magnitude` at the label, `kappa` times, and from 0 elsewhere, all `loss_scale` times.

    The sum over classes or, `per_class`, their mean.
    """
    scale = loss_scale / (logits.shape[1] if per_class else 1)
    return _call("squared", logits, target, reduction, kappa, magnitude, scale)


@lru_cache(maxsize=64)
def _for_each_class(number: float, classes: int) -> Tensor:
    return floats(classes).fill_(number)


def _of_classes(values: Tensor, classes: int) -> Tensor:
    if values.shape != (classes,):  # the kernel would read beyond it
        raise ValueError(f"there must be one number for each of {classes} classes, not {tuple(values.shape)}")
    return values.contiguous()


def _call(name: str, logits: Tensor, target: Tensor, reduction: str, *options: Any) -> Slope:
    logits, target = logits.contiguous(), target.contiguous()
    n, c = logits.shape
    values, slope, total = logits.new_empty(n), torch.empty_like(logits), logits.new_empty(())
    share = 1 / n if reduction == "mean" and n else 1.0
    results = values.data_ptr(), slope.data_ptr(), total.data_ptr()
    wrong = _kernel(name)(n, c, logits.data_ptr(), target.data_ptr(), share, *results, *options)
    if wrong:
        raise IndexError(f"target {int(target[wrong - 1])} is out of bounds")
    return values if reduction == "none" else total, slope


@cache
def _kernel(name: str) -> Callable[..., int]:
    kernel = getattr(library(), f"equipoise_{name}_loss")
    kernel.argtypes, kernel.restype = _ALWAYS + _ARGUMENTS[name], c_int64
    return kernel
