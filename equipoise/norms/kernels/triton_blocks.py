# mypy: allow-untyped-defs, allow-incomplete-defs
"""Batch-group and group norm on a GPU, with the ReLU behind them or not, and example weighing over channel groups.

Kernels over the values have a program for each example and a few channels, in either layout; those between them pool
the numbers of examples and channels, one program for each block and channel group. All sums are float32.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .groups import PerChannel, layout_of, relu_twice_differentiable, twice_differentiable
from .triton import dense, example_tile, is_columns, on


class BlockNormTriton(torch.autograd.Function):
    """`grouped_norm_plain`, or relu(`grouped_norm_plain` + shortcut) with `relu`; mean and variance (N, C) of the
    examples come out beside it.

    A shortcut lies in memory as x does. Where a ReLU was open backward finds out from x or, where there was a shortcut,
    from y, which the layer that follows keeps anyway.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        size: int,
        blocks: int,
        groups: int,
        eps: float,
        relu: bool = False,
        shortcut: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = dense(x)
        with on(x):
            mean, var = _moments_of(x)
            statistics = _pooled(x, mean, var, size, blocks, groups, eps)
            y = _normalized(x, statistics, weight, bias, size, blocks, relu, shortcut)
        ctx.save_for_backward(x, None if shortcut is None else y, weight, bias, statistics)
        ctx.relu, ctx.geometry = relu, (size, blocks, groups, eps)
        ctx.mark_non_differentiable(mean, var)
        return y, mean, var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        none = (None,) * 5
        x, y, weight, bias, statistics = ctx.saved_tensors
        size, blocks, groups, _ = ctx.geometry
        if torch.is_grad_enabled():  # double backward
            if not ctx.relu:
                return *twice_differentiable(grad, x, weight, bias, *ctx.geometry), *none, None
            of_x, of_shortcut, *of_affine = relu_twice_differentiable(grad, x, y, weight, bias, *ctx.geometry)
            return of_x, *of_affine, *none, of_shortcut
        grad = grad.contiguous(memory_format=layout_of(x))
        n, channels = x.shape[:2]
        sums, means, dx = _new(x, 2, n, channels), _new(x, 2, blocks, groups), torch.empty_like(x)
        behind = None if y is None else torch.empty_like(x)
        geometry = {"examples": size, "blocks": blocks, "groups": groups, "WEIGHT": weight is not None}
        over_values = {**geometry, "BIAS": bias is not None}
        with on(x):
            _over_values(
                _sums, x, grad, x, y, behind, weight, bias, *statistics, *sums,
                SHORTCUT=y is not None, RELU=ctx.relu, **over_values,
            )  # fmt: skip
            _over_blocks(_pool_sums, x, *sums, weight, *means, **geometry)
            _over_values(
                _backward, x, grad if behind is None else behind, x, dx, weight, bias, *statistics, *means,
                RELU=ctx.relu and behind is None, **over_values,
            )  # fmt: skip
        d_weight, d_bias = sums.sum(1)
        d_weight = None if weight is None else d_weight.to(weight.dtype)
        return dx, d_weight, None if bias is None else d_bias.to(bias.dtype), *none, behind


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
    x: Tensor,
    statistics: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    size: int,
    blocks: int,
    relu: bool = False,
    shortcut: Tensor | None = None,
) -> Tensor:
    y = torch.empty_like(x)
    _over_values(
        _normalize, x, x, shortcut, y, weight, bias, *statistics,
        examples=size, blocks=blocks, groups=statistics.shape[2], WEIGHT=weight is not None, BIAS=bias is not None,
        SHORTCUT=shortcut is not None, RELU=relu,
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
def _affine(
    mean, rstd, weight, bias, n, c, channels, examples, blocks, width, WEIGHT: tl.constexpr, BIAS: tl.constexpr
):
    """Mean, γ / deviation and β of example n and channels c."""
    m = _statistic(mean, n, c, channels, examples, blocks, width)
    scale = _statistic(rstd, n, c, channels, examples, blocks, width)
    shift = tl.zeros_like(scale)
    if WEIGHT:
        scale *= tl.load(weight + c, mask=c < channels, other=0.0).to(tl.float32)
    if BIAS:
        shift = tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)
    return m, scale, shift


@triton.jit
def _normalize(
    x, shortcut, y, weight, bias, mean, rstd,
    channels, positions, position_stride, channel_stride, examples, blocks, width,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """y = x̂ γ + β, plus the shortcut, then the ReLU, where these are asked for."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    start = n.to(tl.int64) * channels * positions
    m, scale, shift = _affine(mean, rstd, weight, bias, n, c, channels, examples, blocks, width, WEIGHT, BIAS)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = start + (p + j) * position_stride + c * channel_stride
        out = (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m) * scale + shift
        if SHORTCUT:
            out += tl.load(shortcut + at, mask=mask, other=0.0).to(tl.float32)
        if RELU:
            out = tl.where(out < 0, 0.0, out)  # a NaN stays one
        tl.store(y + at, out, mask=mask)


@triton.jit
def _sums(
    grad, x, y, behind, weight, bias, mean, rstd, dot, total,
    channels, positions, position_stride, channel_stride, examples, blocks, width,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Σ dy·x̂ and Σ dy of each example and channel, dy being the gradient behind the ReLU.

    Where there was a shortcut that is its gradient too, and is written to `behind`.
    """
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    start = n.to(tl.int64) * channels * positions
    m, scale, shift = _affine(mean, rstd, weight, bias, n, c, channels, examples, blocks, width, WEIGHT, BIAS)
    sum_g = tl.zeros([POSITIONS, CHANNELS], tl.float32)
    sum_d = tl.zeros([POSITIONS, CHANNELS], tl.float32)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = start + (p + j) * position_stride + c * channel_stride
        g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
        d = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m
        if SHORTCUT:
            g = tl.where(tl.load(y + at, mask=mask, other=0.0) > 0, g, 0.0)
            tl.store(behind + at, g, mask=mask)
        elif RELU:
            g = tl.where(d * scale + shift > 0, g, 0.0)
        sum_g += g
        sum_d += g * d
    r = _statistic(rstd, n, c, channels, examples, blocks, width)
    tl.store(dot + n * channels + c, tl.sum(sum_d, 0, keep_dims=True) * r, mask=valid)
    tl.store(total + n * channels + c, tl.sum(sum_g, 0, keep_dims=True), mask=valid)


@triton.jit
def _backward(
    grad, x, dx, weight, bias, mean, rstd, mean_dot, mean_total,
    channels, positions, position_stride, channel_stride, examples, blocks, width,
    RELU: tl.constexpr,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """rstd (γ dy - mean(γ dy) - x̂ mean(γ dy x̂)).

    `grad` is before the ReLU where there is one to go through (RELU), else behind it.
    """
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    n = tl.program_id(1)
    p = tl.arange(0, POSITIONS)[:, None]
    valid = c < channels
    start = n.to(tl.int64) * channels * positions
    m, scale, shift = _affine(mean, rstd, weight, bias, n, c, channels, examples, blocks, width, WEIGHT, BIAS)
    r = _statistic(rstd, n, c, channels, examples, blocks, width)
    dot = _statistic(mean_dot, n, c, channels, examples, blocks, width) * r
    total = _statistic(mean_total, n, c, channels, examples, blocks, width)
    for j in range(0, positions, POSITIONS):
        mask = valid & (p + j < positions)
        at = start + (p + j) * position_stride + c * channel_stride
        g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
        d = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m
        if RELU:
            g = tl.where(d * scale + shift > 0, g, 0.0)
        tl.store(dx + at, g * scale - (total + d * dot) * r, mask=mask)


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
