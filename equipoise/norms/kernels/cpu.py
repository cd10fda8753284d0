"""Normalization over blocks on the CPU, with the backward formula written out.

A tensor (N, C, *) is seen as K blocks of consecutive examples; statistics of a block are (K, C), or (K, G) where the
channels of a group share them. float32 has kernels of its own (`native/norms.c`). Where those were not compiled, and
for float64, equal blocks are made of PyTorch's kernels. Which of them are fast depends on how the tensor lies in
memory: `_rows` has those for contiguous tensors, `_columns` those for channels-last ones.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ... import native
from ...core import full_precision
from ...native import norms as kernels
from . import columns as _columns
from . import rows as _rows
from .groups import (
    PerChannel,
    Statistics,
    is_channels_last,
    layout_of,
    relu_twice_differentiable,
    twice_differentiable,
    typed,
)
from .moments import exact_moments, merge, near_zero, pool


def block_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, size: int, blocks: int, groups: int, eps: float
) -> tuple[Tensor, Statistics]:
    """x normalized in blocks of `size` examples, the last with all that is left; and the statistics of the batch."""
    values, _ = _dense(full_precision(x))
    weight, bias = (typed(t, values.dtype) for t in (weight, bias))  # the kernels want one type for all
    if values.numel() and native.suits(values, weight, bias):
        y, batch = native_block_norm(values, weight, bias, size, blocks, groups, eps)
        return typed(y, x.dtype), batch
    n, cut = len(x), (blocks - 1) * size
    if blocks == 1 or n == size * blocks:
        y, mean, var = BlockNorm.apply(values, weight, bias, blocks, groups, eps)
        return y.to(x.dtype), Statistics(mean, var, n // len(mean), n)
    parts = zip(values.split([cut, n - cut]), (blocks - 1, 1), strict=True)
    normed = [BlockNorm.apply(part, weight, bias, count, groups, eps) for part, count in parts]
    y, mean, var = (torch.cat(both) for both in zip(*normed, strict=True))
    return y.to(x.dtype), Statistics(mean, var, size, n)


def native_block_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    size: int,
    blocks: int,
    groups: int,
    eps: float,
    relu: bool = False,
    shortcut: Tensor | None = None,
) -> tuple[Tensor, Statistics]:
    """`block_norm` for what suits the kernels in C; with `relu`, relu(`block_norm` + shortcut).

    A shortcut goes with a dense x, and lies in memory as that does.
    """
    x, layout = _dense(x)
    y, mean, var = NativeBlockNorm.apply(x, shortcut, weight, bias, relu, layout is _columns, size, blocks, groups, eps)
    return y, Statistics(mean, var, len(x), len(x))


def batch_moments(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and biased variance (C,) of all of x, in float32 at least."""
    values, layout = _dense(full_precision(x))
    if native.suits(values):
        return kernels.batch_moments(values, layout is _columns)
    # example by example: sums over a whole batch lose digits where PyTorch adds one number after the other
    mean, var = merge(*exact_moments(layout.moments, values, len(values), eps), 1)
    return mean[0], var[0]


class NativeBlockNorm(torch.autograd.Function):
    """For a dense x, channels-last with `columns`. Keeps x, and mean and deviation of each block, for backward.

    Where a ReLU was open backward finds out from x; where a shortcut was added, from y, as the layer that follows keeps
    it anyway.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        shortcut: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        relu: bool,
        columns: bool,
        *geometry: Any,  # size, blocks, groups, eps
    ) -> tuple[Tensor, Tensor, Tensor]:
        y, of_blocks, mean, var = kernels.block_forward(x, shortcut, relu, columns, weight, bias, *geometry)
        ctx.save_for_backward(x, None if shortcut is None else y, weight, bias, of_blocks)
        ctx.relu, ctx.columns, ctx.geometry = relu, columns, geometry
        ctx.mark_non_differentiable(mean, var)
        ctx.set_materialize_grads(False)
        return y, mean, var

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        none = (None,) * 6
        if grad is None:
            return None, None, None, None, *none
        x, y, weight, bias, of_blocks = ctx.saved_tensors
        if torch.is_grad_enabled() or not native.suits(grad):  # differentiated twice, or several gradients at once
            if ctx.relu:
                return *relu_twice_differentiable(grad, x, y, weight, bias, *ctx.geometry), *none
            of_x, *of_affine = twice_differentiable(grad, x, weight, bias, *ctx.geometry)
            return of_x, None, *of_affine, *none
        size, _, groups, _ = ctx.geometry
        dx, behind, d_weight, d_bias = kernels.block_backward(
            _like(grad, x), x, y, ctx.relu, ctx.columns, weight, bias, of_blocks, size, groups
        )
        return dx, behind, None if weight is None else d_weight, None if bias is None else d_bias, *none


class BlockNorm(torch.autograd.Function):
    """For equal blocks of a dense x. Keeps x, and mean and deviation of each block, for backward."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, blocks: int, groups: int, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        y, mean, rstd, part_mean, part_var = _dense(x)[1].forward(x, weight, bias, blocks, groups, eps)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.eps = eps
        ctx.mark_non_differentiable(part_mean, part_var)
        return y, part_mean, part_var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, rstd = ctx.saved_tensors
        blocks, groups = mean.shape
        if torch.is_grad_enabled() or not native.is_plain(grad):  # differentiated twice, or several gradients at once
            gradients = twice_differentiable(grad, x, weight, bias, len(x) // blocks, blocks, groups, ctx.eps)
            return *gradients, None, None, None
        dx, d_weight, d_bias = _dense(x)[1].backward(_like(grad, x), x, weight, mean, rstd)
        return dx, None if weight is None else d_weight, None if bias is None else d_bias, None, None, None


def weighed(x: Tensor, per_channel: PerChannel, alpha: float, eps: float, groups: int) -> Tensor:
    """`example_weighted_norm` without gradients."""
    values, layout = _dense(full_precision(x))
    mean, var, weight, bias = typed_channels = PerChannel(*(typed(t, values.dtype) for t in per_channel))
    if values.numel() and native.suits(values, *typed_channels):
        return typed(kernels.weigh(values, layout is _columns, typed_channels, alpha, eps, groups), x.dtype)
    # an example far from the moving mean raises σ² with it: where the moving statistics are near 0 in this sense, so
    # are the mixed ones, unless they are nearly the example's alone
    careful = alpha > 0.9 or not near_zero(mean, var, eps)
    own_mean, own_var = layout.moments(values, len(x), careful)
    own_mean, own_var = pool(own_mean, own_var, groups)
    mean, var = pool(mean[None], var[None], groups)
    gap = own_mean - mean
    mu = torch.add(mean, gap, alpha=alpha)
    var = torch.lerp(var, own_var, alpha).addcmul_(gap, gap, value=alpha * (1 - alpha))
    return layout.normalized(values, mu, var, weight, bias, eps).to(x.dtype)


def _dense(x: Tensor) -> tuple[Tensor, ModuleType]:
    """x in a layout with kernels, and those."""
    if is_channels_last(x) or (x.is_contiguous() and x.shape[2:].numel() == 1):  # one position: both at once
        return x, _columns
    return x.contiguous(), _rows


def _like(grad: Tensor, x: Tensor) -> Tensor:
    """`grad` as it lies in memory where it lies as x does, else a copy that does."""
    return grad.contiguous(memory_format=layout_of(x))
