# mypy: allow-untyped-defs, allow-incomplete-defs
"""The kernels of `_blockwise` on a GPU: each example and block of channels is a program, in either layout.

What comes between them, over (N, C) numbers, is PyTorch. Sums and statistics are float32, whatever the type of x.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._blockwise import Moments
from ._groups import is_channels_last
from ._triton import is_columns, on


def dense(x: Tensor) -> Tensor:
    return x if is_channels_last(x) else x.contiguous()


def moments(x: Tensor, blocks: int) -> Moments:
    mean, var = _new(x), _new(x)
    _launch(_moments, x, x, mean, var)
    shape = (blocks, -1, x.shape[1])
    return Moments(x, None, None, mean.view(shape), var.view(shape))


def sums(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    dot, total = _new(x), _new(x)
    _launch(_sums, x, grad, x, _by_example(mean, x), _by_example(rstd, x), dot, total)
    shape = (len(mean), -1, x.shape[1])
    return dot.view(shape).sum(1, keepdim=True), total.view(shape).sum(1, keepdim=True)


def affine(x: Tensor, scale: Tensor, shift: Tensor, into_x: bool = False) -> Tensor:
    y = torch.empty_like(x)
    _launch(_affine, x, x, y, _by_example(scale, x), _by_example(shift, x))
    return y


def combine(grad: Tensor, a: Tensor, x: Tensor, b: Tensor, c: Tensor) -> Tensor:
    dx = torch.empty_like(x)
    _launch(_combine, x, grad, x, dx, *(_by_example(values, x) for values in (a, b, c)))
    return dx


def _new(x: Tensor) -> Tensor:
    return torch.empty(x.shape[:2], dtype=torch.float32, device=x.device)


def _by_example(values: Tensor, x: Tensor) -> Tensor:
    """(K, r, C) -> (N, C)."""
    blocks, _, channels = values.shape
    return values.float().expand(blocks, len(x) // blocks, channels).reshape(len(x), channels).contiguous()


def _launch(kernel: Any, x: Tensor, *tensors: Tensor) -> None:
    n, channels = x.shape[:2]
    positions = x.shape[2:].numel()
    columns = is_columns(x)
    if columns:
        width = min(triton.next_power_of_2(channels), 32)
        height = min(triton.next_power_of_2(positions), 4096 // width)
    else:
        height = min(triton.next_power_of_2(positions), 4096)
        width = min(max(1, 2048 // height), triton.next_power_of_2(channels))
    strides = (channels, 1) if columns else (1, positions)
    with on(x):
        kernel[(triton.cdiv(channels, width), n)](
            *tensors, channels, positions, *strides,
            POSITIONS=height, CHANNELS=width, num_warps=4 if width * height <= 2048 else 8,
        )  # fmt: skip


@triton.jit
def _moments(
    x, mean, var, channels, positions, position_stride, channel_stride,
    POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    x += n.to(tl.int64) * channels * positions
    # sums around a value of the channel itself: around 0 they would cancel where |mean| is large
    origin = tl.load(x + c * channel_stride, mask=valid, other=0.0).to(tl.float32)
    first = tl.zeros([POSITIONS, CHANNELS], tl.float32)
    second = tl.zeros([POSITIONS, CHANNELS], tl.float32)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = (p + j) * position_stride + c * channel_stride
        d = tl.where(mask, tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - origin, 0.0)
        first += d
        second += d * d
    d = tl.sum(first, 0, keep_dims=True) / positions
    tl.store(mean + n * channels + c, origin + d, mask=valid)
    v = tl.maximum(tl.sum(second, 0, keep_dims=True) / positions - d * d, 0.0)
    tl.store(var + n * channels + c, v, mask=valid)


@triton.jit
def _sums(
    grad, x, mean, rstd, dot, total, channels, positions, position_stride, channel_stride,
    POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    grad += n.to(tl.int64) * channels * positions
    x += n.to(tl.int64) * channels * positions
    m = tl.load(mean + n * channels + c, mask=valid, other=0.0)
    sum_g = tl.zeros([POSITIONS, CHANNELS], tl.float32)
    sum_d = tl.zeros([POSITIONS, CHANNELS], tl.float32)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = (p + j) * position_stride + c * channel_stride
        g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
        sum_g += g
        sum_d += g * (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m)
    r = tl.load(rstd + n * channels + c, mask=valid, other=0.0)
    tl.store(dot + n * channels + c, tl.sum(sum_d, 0, keep_dims=True) * r, mask=valid)
    tl.store(total + n * channels + c, tl.sum(sum_g, 0, keep_dims=True), mask=valid)


@triton.jit
def _affine(
    x, y, scale, shift, channels, positions, position_stride, channel_stride,
    POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    start = n.to(tl.int64) * channels * positions
    a = tl.load(scale + n * channels + c, mask=valid, other=0.0)
    b = tl.load(shift + n * channels + c, mask=valid, other=0.0)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = start + (p + j) * position_stride + c * channel_stride
        v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(y + at, a * v + b, mask=mask)


@triton.jit
def _combine(
    grad, x, dx, scale_grad, scale_x, shift, channels, positions, position_stride, channel_stride,
    POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    start = n.to(tl.int64) * channels * positions
    a = tl.load(scale_grad + n * channels + c, mask=valid, other=0.0)
    b = tl.load(scale_x + n * channels + c, mask=valid, other=0.0)
    s = tl.load(shift + n * channels + c, mask=valid, other=0.0)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = start + (p + j) * position_stride + c * channel_stride
        g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx + at, a * g + b * v + s, mask=mask)
