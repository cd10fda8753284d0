"""Boxes of images of any shape, scaled to one size: a batch at a time, on either device, the same to the bit.

An output pixel is a weighted mean of the input pixels around its centre, first along rows, then along columns. Weights
are a triangle or a cubic, stretched where the box is scaled down, so that every pixel that an output covers counts
(antialiasing), as in Pillow. Weights are rounded to multiples of 2⁻¹⁴, and everything after that is arithmetic of whole
numbers: C, PyTorch on a CPU and PyTorch on a GPU cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..native import boxes

WEIGHT_BITS = 14  # after the point; twice 16 bits make 32
FEW = 4  # images that are read together where PyTorch does it on a CPU: what lies between two steps then fits its cache
ROW_BITS = 6  # after the point, of sums along rows: with 255 before it they fit 16 bits


class Axis(NamedTuple):
    """How the outputs of each of n images lie along one axis: all (n, 1), float64, in pixels of the image.

    Output i has its centre at ``start + (i + 1/2) * step``, where pixel p reaches from p to p + 1. Only pixels from
    `low` up to, but not including, `high` are read.
    """

    start: Tensor
    step: Tensor
    low: Tensor
    high: Tensor


class Taps(NamedTuple):
    """What each of m outputs is made of: K pixels and their weights (n, m, K). The first `used` (n,) suffice.

    All pixels of an image lie within `span`.
    """

    pixels: Tensor
    weights: Tensor
    used: Tensor
    span: int


def triangle(x: Tensor) -> Tensor:
    """The weights of bilinear scaling."""
    return (1 - x.abs()).clamp_min(0)


def cubic(x: Tensor) -> Tensor:
    """The weights of bicubic scaling with a = -3/4, as PyTorch and the usual augmentations on a GPU have it."""
    x, a = x.abs(), -0.75
    near = ((a + 2) * x - (a + 3)) * x.square() + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return torch.where(x <= 1, near, torch.where(x < 2, far, 0.0))


Kernel = Callable[[Tensor], Tensor]
KERNELS: dict[str, tuple[Kernel, int]] = {"bilinear": (triangle, 1), "bicubic": (cubic, 2)}  # and their radius


def taps(axis: Axis, outputs: Tensor, largest_step: float, mode: str) -> Taps:
    """The pixels and weights of `outputs`, indices (m,) or (n, m).

    `largest_step` is a bound on `axis.step`: shapes depend on it alone, so that nothing waits for a device.
    """
    kernel, radius = KERNELS[mode]
    stretch = axis.step.clamp_min(1)
    centre = axis.start + (outputs + 0.5) * axis.step
    first = (centre - radius * stretch - 0.5).floor() + 1  # the first pixel whose centre is nearer than the radius
    most = math.ceil(2 * radius * max(largest_step, 1.0))
    pixels = first[..., None] + torch.arange(most, device=first.device)
    low, high = axis.low[..., None], axis.high[..., None]
    weights = kernel((pixels + 0.5 - centre[..., None]) / stretch[..., None])
    weights = weights.where((pixels >= low) & (pixels < high), 0.0)
    weights = weights / weights.sum(-1, keepdim=True)
    used = (2 * radius * stretch[:, 0]).ceil().clamp_max(most)
    return Taps(
        pixels.maximum(low).minimum(high - 1).to(torch.int32),
        (weights * 2**WEIGHT_BITS).round().to(torch.int16),
        used.to(torch.int32),
        math.ceil(outputs.shape[-1] * largest_step) + most,
    )


def read_boxes(arena: Tensor, first: Tensor, widths: Tensor, rows: Taps, columns: Taps) -> Tensor:
    """Outputs (n, 3, H, W) as uint8 of n images that lie in `arena` (P, 3), from pixels `first` on, `widths` wide."""
    if boxes.suits(arena):
        pixels = boxes.read_boxes(arena, first, widths, rows[:3], columns[:3])
    elif arena.device.type == "cpu" and len(first):
        parts = [slice(start, start + FEW) for start in range(0, len(first), FEW)]
        needed = ((first[part], widths[part], _needed(rows, part), _needed(columns, part)) for part in parts)
        pixels = torch.cat([_read_boxes(arena, *part) for part in needed])
    else:
        pixels = _read_boxes(arena, first, widths, rows, columns)
    return pixels.permute(0, 3, 1, 2)


def _read_boxes(arena: Tensor, first: Tensor, widths: Tensor, rows: Taps, columns: Taps) -> Tensor:
    """The same with PyTorch alone, (n, H, W, 3)."""
    top, bottom = rows.pixels[:, 0, :1], rows.pixels[:, -1, -1:]
    lines = (top + torch.arange(rows.span, device=top.device)).minimum(bottom)
    starts = first[:, None] + lines * widths[:, None]  # int64: an arena may have more than 2³¹ pixels
    along = torch.zeros((), dtype=torch.int32, device=top.device)
    for column, weight in zip(columns.pixels.unbind(2), columns.weights.int().unbind(2), strict=True):
        along = along + arena[starts[:, :, None] + column[:, None, :]] * weight[:, None, :, None]
    scaled = _shifted(along, WEIGHT_BITS - ROW_BITS)
    image = torch.arange(len(first), device=top.device)[:, None]
    total = torch.zeros((), dtype=torch.int32, device=top.device)
    for row, weight in zip((rows.pixels - top[..., None]).unbind(2), rows.weights.int().unbind(2), strict=True):
        total = total + scaled[image, row] * weight[:, :, None, None]
    return _shifted(total, WEIGHT_BITS + ROW_BITS).clamp(0, 255).to(torch.uint8)


def _needed(all_taps: Taps, images: slice) -> Taps:
    """The taps of a few images, and no more than those need: on a CPU nothing waits for such numbers."""
    used = all_taps.used[images]
    pixels, weights = (values[images, :, : int(used.max())] for values in all_taps[:2])
    span = int((pixels.amax((1, 2)) - pixels.amin((1, 2))).max()) + 1
    return Taps(pixels, weights, used, span)


def _shifted(values: Tensor, bits: int) -> Tensor:
    """values / 2^bits, rounded."""
    return (values + 2 ** (bits - 1)) >> bits
