# mypy: allow-untyped-defs, allow-incomplete-defs
"""The moving averages, each operation in one kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .groups import Statistics
from .triton import on


def update_moving_triton(
    mean: Tensor,
    square: Tensor,
    rest: Tensor,
    batch: Statistics,
    rate: float,
    usual: Tensor | None = None,
    unbiased: float = 1.0,
) -> None:
    """`update_moving` on a GPU; `usual` is the moving variance as PyTorch's batch norm has it."""
    parts, channels = batch.mean.shape
    width = min(triton.next_power_of_2(channels), 64)
    with on(mean):
        _update[(triton.cdiv(channels, width),)](
            mean, square, rest, usual, batch.mean, batch.var,
            parts, channels, batch.size, batch.examples, rate, unbiased,
            USUAL=usual is not None, PARTS=min(triton.next_power_of_2(parts), 64), CHANNELS=width, num_warps=4,
        )  # fmt: skip


def moving_variance_triton(mean: Tensor, square: Tensor, rest: Tensor) -> Tensor:
    """`moving_variance` on a GPU."""
    var = torch.empty_like(mean)
    with on(mean):
        _variance[(triton.cdiv(len(mean), 256),)](mean, square, rest, var, len(mean), CHANNELS=256, num_warps=4)
    return var


@triton.jit
def _variance(mean, square, rest, var, channels, CHANNELS: tl.constexpr):
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    m = tl.load(mean + c, mask=c < channels, other=0.0).to(tl.float64)
    s = tl.load(square + c, mask=c < channels, other=0.0).to(tl.float64)
    v = s - m * m + tl.load(rest + c, mask=c < channels, other=0.0)
    tl.store(var + c, tl.maximum(v, 0.0), mask=c < channels)


@triton.jit
def _update(
    mean, square, rest, usual, part_mean, part_var, parts, channels, size, examples, rate, unbiased,
    USUAL: tl.constexpr, PARTS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    valid = c < channels
    p = tl.arange(0, PARTS)[:, None]
    first = tl.zeros([PARTS, CHANNELS], tl.float32)
    for j in range(0, parts, PARTS):
        mask = valid & (p + j < parts)
        share = tl.where(p + j == parts - 1, examples - (p + j) * size, size) / examples
        first += share * tl.load(part_mean + (p + j) * channels + c, mask=mask, other=0.0)
    batch_mean = tl.sum(first, 0, keep_dims=True)
    second = tl.zeros([PARTS, CHANNELS], tl.float32)
    for j in range(0, parts, PARTS):
        mask = valid & (p + j < parts)
        share = tl.where(p + j == parts - 1, examples - (p + j) * size, size) / examples
        d = tl.load(part_mean + (p + j) * channels + c, mask=mask, other=0.0) - batch_mean
        v = tl.load(part_var + (p + j) * channels + c, mask=mask, other=0.0)
        second += tl.where(mask, share * (v + d * d), 0.0)
    batch_var = tl.sum(second, 0, keep_dims=True)
    if USUAL:
        old = tl.load(usual + c, mask=valid, other=0.0)
        tl.store(usual + c, old + rate * (unbiased * batch_var - old), mask=valid)

    m = tl.load(mean + c, mask=valid, other=0.0).to(tl.float64)
    v = tl.load(square + c, mask=valid, other=0.0).to(tl.float64) - m * m + tl.load(rest + c, mask=valid, other=0.0)
    step = batch_mean.to(tl.float64) - m
    v += rate * (batch_var.to(tl.float64) - v) + rate * (1 - rate) * step * step
    m += rate * step
    new_mean = m.to(mean.dtype.element_ty)
    new_square = (v + m * m).to(square.dtype.element_ty)
    m = new_mean.to(tl.float64)
    tl.store(mean + c, new_mean, mask=valid)
    tl.store(square + c, new_square, mask=valid)
    tl.store(rest + c, v - (new_square.to(tl.float64) - m * m), mask=valid)
