# mypy: allow-untyped-defs, allow-incomplete-defs
"""Example weighing in one kernel: the statistics of an example and its normalization."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .triton import dense, example_tile, is_columns, on


def example_weighted_triton(
    x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, alpha: float, eps: float
) -> Tensor:
    """`example_weighted_norm` on a GPU, for one channel a group and without gradients."""
    x, columns = dense(x), is_columns(x)
    n, channels = x.shape[:2]
    positions = x.shape[2:].numel()
    height, width = example_tile(x)
    y = torch.empty_like(x)
    with on(x):
        _weigh[(triton.cdiv(channels, width), n)](
            x, y, mean, var, weight, bias, alpha, eps, channels, positions,
            channels if columns else 1, 1 if columns else positions,
            WEIGHT=weight is not None, BIAS=bias is not None, RESIDENT=height >= positions,
            POSITIONS=height, CHANNELS=width, num_warps=4 if width * height <= 2048 else 8,
        )  # fmt: skip
    return y


@triton.jit
def _weigh(
    x, y, mean, var, weight, bias, alpha, eps, channels, positions, position_stride, channel_stride,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, RESIDENT: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    start = tl.program_id(1).to(tl.int64) * channels * positions
    x += start
    y += start
    valid = c < channels
    p = tl.arange(0, POSITIONS)[:, None]
    moving_mean = tl.load(mean + c, mask=valid, other=0.0).to(tl.float32)
    moving_var = tl.load(var + c, mask=valid, other=1.0).to(tl.float32)
    if RESIDENT:
        mask = valid & (p < positions)
        at = p * position_stride + c * channel_stride
        v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        own_mean = tl.sum(v, 0, keep_dims=True) / positions
        d = tl.where(mask, v - own_mean, 0.0)
        own_var = tl.sum(d * d, 0, keep_dims=True) / positions
    else:
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
        own_mean = origin + d
        own_var = tl.maximum(tl.sum(second, 0, keep_dims=True) / positions - d * d, 0.0)
    gap = own_mean - moving_mean
    mu = moving_mean + alpha * gap
    scale = 1.0 / tl.sqrt(alpha * own_var + (1 - alpha) * moving_var + alpha * (1 - alpha) * gap * gap + eps)
    shift = tl.zeros_like(scale)
    if WEIGHT:
        scale *= tl.load(weight + c, mask=valid, other=0.0).to(tl.float32)
    if BIAS:
        shift = tl.load(bias + c, mask=valid, other=0.0).to(tl.float32)
    if RESIDENT:
        tl.store(y + at, (v - mu) * scale + shift, mask=mask)
    else:
        for j in range(0, positions, POSITIONS):
            mask = valid & (p + j < positions)
            at = (p + j) * position_stride + c * channel_stride
            v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
            tl.store(y + at, (v - mu) * scale + shift, mask=mask)
