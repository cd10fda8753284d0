# mypy: allow-untyped-defs, allow-incomplete-defs
"""Batch-group and group norm on a GPU, and example weighing over channel groups.

Kernels over the values have a program for each example and a few channels, in either layout; those between them pool
the numbers of examples and channels, one program for each block and channel group. All sums are float32.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .groups import PerChannel, layout_of, twice_differentiable
from .triton import dense, example_tile, is_columns, on


class BlockNormTriton(torch.autograd.Function):
    """`grouped_norm_plain`; mean and variance (N, C) of the examples come out beside it."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, size: int, blocks: int, groups: int, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = dense(x)
        with on(x):
            mean, var = _moments_of(x)
            statistics = _pooled(x, mean, var, size, blocks, groups, eps)
            y = _normalized(x, statistics, weight, bias, size, blocks)
        ctx.save_for_backward(x, weight, bias, statistics)
        ctx.geometry = size, blocks, groups, eps
        ctx.mark_non_differentiable(mean, var)
        return y, mean, var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, statistics = ctx.saved_tensors
        size, blocks, groups, eps = ctx.geometry
        if torch.is_grad_enabled():  # double backward
            gradients = twice_differentiable(grad, x, weight, bias, size, blocks, groups, eps)
            return *gradients, None, None, None, None
        grad = grad.contiguous(memory_format=layout_of(x))
        n, channels = x.shape[:2]
        sums, means, dx = _new(x, 2, n, channels), _new(x, 2, blocks, groups), torch.empty_like(x)
        geometry = {"examples": size, "blocks": blocks, "groups": groups, "WEIGHT": weight is not None}
        with on(x):
            _over_values(_sums, x, grad, x, *statistics, *sums, examples=size, blocks=blocks, groups=groups)
            _over_blocks(_pool_sums, x, *sums, weight, *means, **geometry)
            _over_values(_backward, x, grad, x, dx, weight, *statistics, *means, **geometry)
        d_weight, d_bias = sums.sum(1)
        d_weight = None if weight is None else d_weight.to(weight.dtype)
        return dx, d_weight, None if bias is None else d_bias.to(bias.dtype), None, None, None, None


def weighed_groups(x: Tensor, per_channel: PerChannel, alpha: float, eps: float, groups: int) -> Tensor:
    """`example_weighted_norm` without gradients."""
    x, (mean, var, weight, bias) = dense(x), per_channel
    with on(x):
        own_mean, own_var = _moments_of(x)
        statistics = _pooled(x, own_mean, own_var, 1, len(x), groups, eps, (mean, var, alpha))
        return _normalized(x, statistics, weight, bias, 1, len(x))


# -- launches ----------------------------------------------------------------------------------------------------------


def _moments_of(x: Tensor) -> Tensor:
    """Mean and variance (N, C)."""
    out = _new(x, 2, *x.shape[:2])
    _over_values(_moments, x, x, *out)
    return out


def _pooled(
    x: Tensor,
    mean: Tensor,
    var: Tensor,
    size: int,
    blocks: int,
    groups: int,
    eps: float,
    moving: tuple[Tensor | None, Tensor | None, float] = (None, None, 1.0),
) -> Tensor:
    """Mean and 1 / deviation (K, G), with moving averages mixed in where they are given."""
    out = _new(x, 2, blocks, groups)
    _over_blocks(
        _pool, x, mean, var, *moving, eps, *out,
        examples=size, blocks=blocks, groups=groups, MOVING=moving[0] is not None,
    )  # fmt: skip
    return out


def _normalized(
    x: Tensor, statistics: Tensor, weight: Tensor | None, bias: Tensor | None, size: int, blocks: int
) -> Tensor:
    y = torch.empty_like(x)
    _over_values(
        _normalize, x, x, y, weight, bias, *statistics,
        examples=size, blocks=blocks, groups=statistics.shape[2], WEIGHT=weight is not None, BIAS=bias is not None,
    )  # fmt: skip
    return y


def _new(x: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=x.device)


def _over_blocks(kernel: Any, x: Tensor, *args: Any, groups: int, blocks: int, **options: Any) -> None:
    n, channels = x.shape[:2]
    width = channels // groups
    kernel[(groups, blocks)](
        *args, n=n, channels=channels, positions=x.shape[2:].numel(), blocks=blocks, width=width,
        CHANNELS=triton.next_power_of_2(width), num_warps=1 if width <= 128 else 4, **options,
    )  # fmt: skip


def _over_values(kernel: Any, x: Tensor, *args: Any, groups: int | None = None, **options: Any) -> None:
    n, channels = x.shape[:2]
    positions = x.shape[2:].numel()
    columns, (along, across) = is_columns(x), example_tile(x)
    if groups is not None:
        options["width"] = channels // groups
    kernel[(triton.cdiv(channels, across), n)](
        *args, channels=channels, positions=positions,
        position_stride=channels if columns else 1, channel_stride=1 if columns else positions,
        POSITIONS=along, CHANNELS=across, num_warps=4 if across * along <= 2048 else 8, **options,
    )  # fmt: skip


# -- kernels over the values -------------------------------------------------------------------------------------------


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
def _statistic(values, n, c, channels, examples, blocks, width):
    """The number of example n and channels c among those (K, G) of blocks and channel groups."""
    k = tl.minimum(n // examples, blocks - 1)
    return tl.load(values + k * (channels // width) + c // width, mask=c < channels, other=0.0)


@triton.jit
def _normalize(
    x, y, weight, bias, mean, rstd,
    channels, positions, position_stride, channel_stride, examples, blocks, width,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    start = n.to(tl.int64) * channels * positions
    m = _statistic(mean, n, c, channels, examples, blocks, width)
    scale = _statistic(rstd, n, c, channels, examples, blocks, width)
    shift = tl.zeros_like(scale)
    if WEIGHT:
        scale *= tl.load(weight + c, mask=valid, other=0.0).to(tl.float32)
    if BIAS:
        shift = tl.load(bias + c, mask=valid, other=0.0).to(tl.float32)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = start + (p + j) * position_stride + c * channel_stride
        v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(y + at, (v - m) * scale + shift, mask=mask)


@triton.jit
def _sums(
    grad, x, mean, rstd, dot, total,
    channels, positions, position_stride, channel_stride, examples, blocks, width,
    POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Σ dy·x̂ and Σ dy of each example and channel."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    grad += n.to(tl.int64) * channels * positions
    x += n.to(tl.int64) * channels * positions
    m = _statistic(mean, n, c, channels, examples, blocks, width)
    sum_g = tl.zeros([POSITIONS, CHANNELS], tl.float32)
    sum_d = tl.zeros([POSITIONS, CHANNELS], tl.float32)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = (p + j) * position_stride + c * channel_stride
        g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
        sum_g += g
        sum_d += g * (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m)
    r = _statistic(rstd, n, c, channels, examples, blocks, width)
    tl.store(dot + n * channels + c, tl.sum(sum_d, 0, keep_dims=True) * r, mask=valid)
    tl.store(total + n * channels + c, tl.sum(sum_g, 0, keep_dims=True), mask=valid)


@triton.jit
def _backward(
    grad, x, dx, weight, mean, rstd, mean_dot, mean_total,
    channels, positions, position_stride, channel_stride, examples, blocks, width,
    WEIGHT: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """rstd (γ dy - mean(γ dy) - x̂ mean(γ dy x̂))."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    start = n.to(tl.int64) * channels * positions
    m = _statistic(mean, n, c, channels, examples, blocks, width)
    r = _statistic(rstd, n, c, channels, examples, blocks, width)
    dot = _statistic(mean_dot, n, c, channels, examples, blocks, width)
    total = _statistic(mean_total, n, c, channels, examples, blocks, width)
    w = tl.full([1, CHANNELS], 1.0, tl.float32)
    if WEIGHT:
        w = tl.load(weight + c, mask=valid, other=0.0).to(tl.float32)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = start + (p + j) * position_stride + c * channel_stride
        g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
        h = (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m) * r
        tl.store(dx + at, (w * g - total - h * dot) * r, mask=mask)


# -- kernels over the blocks -------------------------------------------------------------------------------------------


@triton.jit
def _pool(
    mean, var, moving_mean, moving_var, alpha, eps, block_mean, block_rstd,
    n, channels, positions, examples, blocks, width, MOVING: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    g, k = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, CHANNELS)
    valid = lane < width
    first = k * examples
    count = tl.where(k == blocks - 1, n - first, examples)
    at = first * channels + g * width + lane
    total = tl.zeros([CHANNELS], tl.float32)
    for i in range(count):
        total += tl.load(mean + at + i * channels, mask=valid, other=0.0)
    m = tl.sum(total, 0) / (count * width)
    total = tl.zeros([CHANNELS], tl.float32)
    for i in range(count):
        d = tl.where(valid, tl.load(mean + at + i * channels, mask=valid, other=0.0) - m, 0.0)
        total += d * d + tl.load(var + at + i * channels, mask=valid, other=0.0)
    s = tl.sum(total, 0) / (count * width)
    if MOVING:
        other = tl.load(moving_mean + g * width + lane, mask=valid, other=0.0).to(tl.float32)
        spread = tl.load(moving_var + g * width + lane, mask=valid, other=0.0).to(tl.float32)
        other_mean = tl.sum(other, 0) / width
        d = tl.where(valid, other - other_mean, 0.0)
        other_var = tl.sum(d * d + spread, 0) / width
        gap = m - other_mean
        m = other_mean + alpha * gap
        s = alpha * s + (1 - alpha) * other_var + alpha * (1 - alpha) * gap * gap
    out = k * (channels // width) + g
    tl.store(block_mean + out, m)
    tl.store(block_rstd + out, 1.0 / tl.sqrt(s + eps))


@triton.jit
def _pool_sums(
    dot, total, weight, mean_dot, mean_total,
    n, channels, positions, examples, blocks, width, WEIGHT: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Means of γ dy x̂ and γ dy over each block and channel group."""
    g, k = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, CHANNELS)
    valid = lane < width
    first = k * examples
    count = tl.where(k == blocks - 1, n - first, examples)
    at = first * channels + g * width + lane
    dots = tl.zeros([CHANNELS], tl.float32)
    totals = tl.zeros([CHANNELS], tl.float32)
    for i in range(count):
        dots += tl.load(dot + at + i * channels, mask=valid, other=0.0)
        totals += tl.load(total + at + i * channels, mask=valid, other=0.0)
    if WEIGHT:
        w = tl.load(weight + g * width + lane, mask=valid, other=0.0).to(tl.float32)
        dots *= w
        totals *= w
    values = (count * width).to(tl.float32) * positions
    out = k * (channels // width) + g
    tl.store(mean_dot + out, tl.sum(dots, 0) / values)
    tl.store(mean_total + out, tl.sum(totals, 0) / values)
