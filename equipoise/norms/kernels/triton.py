"""Ghost batch norm on a GPU: how the kernels are called."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from . import triton_kernels as kernels
from .groups import is_channels_last, layout_of, twice_differentiable


class GhostNormTriton(torch.autograd.Function):
    """`grouped_norm_plain` for one channel a group; mean and variance (K, C) of the ghosts come out beside it.

    Keeps x and those for backward. Reads x from memory once where a ghost fits into the cache.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, size: int, blocks: int, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = dense(x)
        y = torch.empty_like(x)
        mean, var = (torch.empty(blocks, x.shape[1], dtype=torch.float32, device=x.device) for _ in range(2))
        options = {"WEIGHT": weight is not None, "BIAS": bias is not None}
        with on(x):
            if is_columns(x):
                plan = ColumnPlan.of(x, size, blocks)
                part_mean, part_square = plan.new_parts(x, blocks)
                kernels.columns_moments[plan.grid](x, part_mean, part_square, *plan.shape, **plan.tile)
                kernels.columns_forward[plan.grid](
                    x, y, weight, bias, part_mean, part_square, mean, var, *plan.shape, eps,
                    **options, SPLITS=plan.all_splits, **plan.tile,
                )  # fmt: skip
            else:
                rows = RowPlan.of(x, size, blocks, tensors=1)
                kernels.rows_forward[rows.grid](x, y, weight, bias, mean, var, *rows.shape, eps, **options, **rows.tile)
        ctx.save_for_backward(x, weight, bias, mean, var)
        ctx.geometry = size, blocks, eps
        ctx.mark_non_differentiable(mean, var)
        return y, mean, var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, var = ctx.saved_tensors
        size, blocks, eps = ctx.geometry
        if torch.is_grad_enabled():  # double backward
            gradients = twice_differentiable(grad, x, weight, bias, size, blocks, x.shape[1], eps)
            return *gradients, None, None, None
        columns = is_columns(x)
        grad = grad.contiguous(memory_format=layout_of(x))
        dx = torch.empty_like(x)
        options = {"WEIGHT": weight is not None}
        with on(x):
            if columns:
                plan = ColumnPlan.of(x, size, blocks)
                parts = plan.new_parts(x, blocks)
                sums = torch.empty(2, x.shape[1], dtype=torch.float32, device=x.device)
                kernels.columns_sums[plan.grid](grad, x, mean, var, *parts, *plan.shape, eps, **plan.tile)
                kernels.columns_backward[*plan.grid[:2], blocks + 1](
                    grad, x, dx, weight, mean, var, *parts, sums[0], sums[1], *plan.shape, eps,
                    **options, SPLITS=plan.all_splits, **plan.tile,
                )  # fmt: skip
            else:
                rows = RowPlan.of(x, size, blocks, tensors=2)
                each = torch.empty(2, blocks, x.shape[1], dtype=torch.float32, device=x.device)
                kernels.rows_backward[rows.grid](
                    grad, x, dx, weight, mean, var, each[0], each[1], *rows.shape, eps, **options, **rows.tile
                )
                sums = each.sum(1)
        d_weight = None if weight is None else sums[0].to(weight.dtype)
        d_bias = None if bias is None else sums[1].to(bias.dtype)
        return dx, d_weight, d_bias, None, None, None


class RowPlan(NamedTuple):
    """How the row kernels are cut: programs, sizes, tile."""

    grid: tuple[int, int]
    shape: tuple[int, ...]
    tile: dict[str, Any]

    @classmethod
    def of(cls, x: Tensor, size: int, blocks: int, tensors: int) -> RowPlan:
        """`tensors` is how many are read: x alone, or the gradient too."""
        n, channels = x.shape[:2]
        positions = x.shape[2:].numel()
        values = max(size, n - (blocks - 1) * size) * positions  # of a channel in the largest ghost
        held = values * x.element_size() * tensors
        resident = held <= 2**15
        if resident:
            width = triton.next_power_of_2(values)
            across = min(max(1, 4096 // width), triton.next_power_of_2(channels))
            warps = min(max(width * across // 512, 4), 16)
        else:
            # the larger a ghost, the fewer programs at a time, so that the cache keeps it until the second reading
            warps = 8 if held <= 2**16 else 16 if held <= 2**17 else 32
            width, across = 512 * warps, 1
        tile = {"POSITIONS": positions, "RESIDENT": resident, "CHANNELS": across, "VALUES": width, "num_warps": warps}
        return cls((triton.cdiv(channels, across), blocks), (n, channels, size, blocks), tile)


class ColumnPlan(NamedTuple):
    """How the column kernels are cut: programs, sizes, tile."""

    grid: tuple[int, int, int]
    shape: tuple[int, ...]
    tile: dict[str, Any]

    @classmethod
    def of(cls, x: Tensor, size: int, blocks: int) -> ColumnPlan:
        n, channels = x.shape[:2]
        positions = x.shape[2:].numel()
        rows = max(size, n - (blocks - 1) * size) * positions  # of the largest ghost
        width = min(triton.next_power_of_2(channels), 64)
        height = 4096 // width
        across = triton.cdiv(channels, width)
        splits = min(max(1, 512 // (blocks * across)), triton.cdiv(rows, height), 64)
        rows_each = triton.cdiv(triton.cdiv(rows, splits), height) * height
        splits = triton.cdiv(rows, rows_each)
        shape = (n, channels, size, blocks, positions, rows_each, splits)
        return cls((across, splits, blocks), shape, {"ROWS": height, "CHANNELS": width, "num_warps": 8})

    @property
    def all_splits(self) -> int:
        return triton.next_power_of_2(self.grid[1])

    def new_parts(self, x: Tensor, blocks: int) -> Tensor:
        """Room for two numbers of each part and channel."""
        return torch.empty(2, blocks * self.grid[1], x.shape[1], dtype=torch.float32, device=x.device)


def example_tile(x: Tensor) -> tuple[int, int]:
    """How many positions and channels of one example a program takes at a time."""
    positions, channels = triton.next_power_of_2(x.shape[2:].numel()), triton.next_power_of_2(x.shape[1])
    if is_columns(x):
        across = min(channels, 32)
        return min(positions, 4096 // across), across
    along = min(positions, 4096)
    return along, min(max(1, 2048 // along), channels)


def is_columns(x: Tensor) -> bool:
    return is_channels_last(x) or x.shape[2:].numel() == 1


def dense(x: Tensor) -> Tensor:
    return x if is_channels_last(x) else x.contiguous()


def on(x: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device, which need not be that of x."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
