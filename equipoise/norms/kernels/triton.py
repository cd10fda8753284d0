"""Batch and ghost batch norm on a GPU: how the kernels are called."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from . import triton_kernels as kernels
from .groups import is_channels_last, layout_of, relu_twice_differentiable, twice_differentiable


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
        with on(x):
            if is_columns(x):
                _columns_forward(x, None, y, weight, bias, mean, var, size, eps, relu=False)
            else:
                rows = RowPlan.of(x, size, blocks, tensors=1)
                options = {"WEIGHT": weight is not None, "BIAS": bias is not None}
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
        with on(x):
            if columns:
                dx, sums = _columns_backward(grad, x, None, weight, bias, mean, var, size, eps, relu=False)[:2]
            else:
                dx = torch.empty_like(x)
                rows = RowPlan.of(x, size, blocks, tensors=2)
                each = torch.empty(2, blocks, x.shape[1], dtype=torch.float32, device=x.device)
                kernels.rows_backward[rows.grid](
                    grad, x, dx, weight, mean, var, each[0], each[1], *rows.shape, eps,
                    WEIGHT=weight is not None, **rows.tile,
                )  # fmt: skip
                sums = each.sum(1)
        return dx, *_of_affine(sums, weight, bias), None, None, None


class NormReluTriton(torch.autograd.Function):
    """relu(`grouped_norm_plain` + shortcut) for one channel a group and channels-last x; mean and variance (K, C) of
    the blocks come out beside it.

    Reads x, and the shortcut, no more often than the norm alone. Without a shortcut backward finds out from x where the
    ReLU was open; with one it keeps y, as the layer that follows does.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        shortcut: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        size: int,
        blocks: int,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        y = torch.empty_like(x)
        mean, var = (torch.empty(blocks, x.shape[1], dtype=torch.float32, device=x.device) for _ in range(2))
        with on(x):
            _columns_forward(x, shortcut, y, weight, bias, mean, var, size, eps, relu=True)
        ctx.save_for_backward(x, None if shortcut is None else y, weight, bias, mean, var)
        ctx.geometry = size, blocks, eps
        ctx.mark_non_differentiable(mean, var)
        return y, mean, var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, y, weight, bias, mean, var = ctx.saved_tensors
        size, blocks, eps = ctx.geometry
        if torch.is_grad_enabled():  # double backward
            gradients = relu_twice_differentiable(grad, x, y, weight, bias, size, blocks, x.shape[1], eps)
            return *gradients, None, None, None
        grad = grad.contiguous(memory_format=layout_of(x))
        with on(x):
            dx, sums, of_shortcut = _columns_backward(grad, x, y, weight, bias, mean, var, size, eps, relu=True)
        return dx, of_shortcut, *_of_affine(sums, weight, bias), None, None, None


def _columns_forward(
    x: Tensor,
    shortcut: Tensor | None,
    y: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    size: int,
    eps: float,
    relu: bool,
) -> None:
    """Fills y, and mean and variance (K, C) of the blocks."""
    plan = ColumnPlan.of(x, size, len(mean))
    part_mean, part_square = plan.new_parts(x, len(mean))
    kernels.columns_moments[plan.grid](x, part_mean, part_square, *plan.shape, **plan.tile)
    kernels.columns_forward[plan.grid](
        x, shortcut, y, weight, bias, part_mean, part_square, mean, var, *plan.shape, eps,
        SHORTCUT=shortcut is not None, RELU=relu, WEIGHT=weight is not None, BIAS=bias is not None,
        SPLITS=plan.all_splits, **plan.tile,
    )  # fmt: skip


def _columns_backward(
    grad: Tensor,
    x: Tensor,
    y: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    size: int,
    eps: float,
    relu: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of x, of γ and β (2, C), and of the shortcut; that there was one says y, which it was added to."""
    plan, dx = ColumnPlan.of(x, size, len(mean)), torch.empty_like(x)
    behind = None if y is None else torch.empty_like(x)
    parts = plan.new_parts(x, len(mean))
    sums = torch.empty(2, x.shape[1], dtype=torch.float32, device=x.device)
    options = {"WEIGHT": weight is not None, "BIAS": bias is not None}
    kernels.columns_sums[plan.grid](
        grad, x, y, behind, weight, bias, mean, var, *parts, *plan.shape, eps,
        SHORTCUT=y is not None, RELU=relu, **options, **plan.tile,
    )  # fmt: skip
    kernels.columns_backward[*plan.grid[:2], len(mean) + 1](
        grad if behind is None else behind, x, dx, weight, bias, mean, var, *parts, sums[0], sums[1], *plan.shape, eps,
        RELU=relu and behind is None, **options, SPLITS=plan.all_splits, **plan.tile,
    )  # fmt: skip
    return dx, sums, behind


def _of_affine(sums: Tensor, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The sums (2, C) as gradients of γ and β, where there are such."""
    d_weight, d_bias = sums
    return (
        None if weight is None else d_weight.to(weight.dtype),
        None if bias is None else d_bias.to(bias.dtype),
    )


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
        # a single block fills the chip with its parts alone; what was fastest on an H200
        widest, values, most_splits, warps = (64, 4096, 64, 8) if blocks > 1 else (32, 2048, 128, 4)
        width = min(triton.next_power_of_2(channels), widest)
        height = values // width
        across = triton.cdiv(channels, width)
        splits = min(max(1, 512 // (blocks * across)), triton.cdiv(rows, height), most_splits)
        rows_each = triton.cdiv(triton.cdiv(rows, splits), height) * height
        splits = triton.cdiv(rows, rows_each)
        shape = (n, channels, size, blocks, positions, rows_each, splits)
        return cls((across, splits, blocks), shape, {"ROWS": height, "CHANNELS": width, "num_warps": warps})

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
