"""Normalization over equal blocks on the CPU, made of PyTorch's own kernels, with the backward formula written out.

A tensor (N, C, *) is seen as K equal blocks of consecutive examples; statistics of a block are (K, C), or (K, G) where
the channels of a group share them. Which kernels are fast depends on how the tensor lies in memory: `_rows` has those
for contiguous tensors, `_columns` those for channels-last ones.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ..core import full_precision
from . import _columns, _rows
from ._groups import Statistics, is_channels_last, twice_differentiable
from ._moments import near_zero, pool


def block_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, size: int, blocks: int, groups: int, eps: float
) -> tuple[Tensor, Statistics]:
    """x normalized in blocks of `size` examples, the last with all that is left; and the statistics of the batch."""
    values = full_precision(x)
    affine = [t if t is None else full_precision(t) for t in (weight, bias)]  # the kernels want one type for all
    n, cut = len(x), (blocks - 1) * size
    if blocks == 1 or n == size * blocks:
        y, mean, var = BlockNorm.apply(values, *affine, blocks, groups, eps)
        return y.to(x.dtype), Statistics(mean, var, n // len(mean), n)
    parts = zip(values.split([cut, n - cut]), (blocks - 1, 1), strict=True)
    normed = [BlockNorm.apply(part, *affine, count, groups, eps) for part, count in parts]
    y, mean, var = (torch.cat(both) for both in zip(*normed, strict=True))
    return y.to(x.dtype), Statistics(mean, var, size, n)


class BlockNorm(torch.autograd.Function):
    """For equal blocks. Keeps x, and mean and deviation of each block, for backward."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, blocks: int, groups: int, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x, layout = _dense(x)
        y, mean, rstd, part_mean, part_var = layout.forward(x, weight, bias, blocks, groups, eps)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.eps = eps
        ctx.mark_non_differentiable(part_mean, part_var)
        return y, part_mean, part_var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, rstd = ctx.saved_tensors
        blocks, groups = mean.shape
        if torch.is_grad_enabled():  # somebody differentiates twice
            found = twice_differentiable(grad, x, weight, bias, len(x) // blocks, blocks, groups, ctx.eps)
            return *found, None, None, None
        grad = grad.contiguous(memory_format=torch.channels_last if is_channels_last(x) else torch.contiguous_format)
        x, layout = _dense(x)
        dx, d_weight, d_bias = layout.backward(grad, x, weight, mean, rstd)
        return dx, None if weight is None else d_weight, None if bias is None else d_bias, None, None, None


def weighed(
    x: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    alpha: float,
    eps: float,
    groups: int,
) -> Tensor:
    """`example_weighted_norm` without gradients."""
    values, layout = _dense(full_precision(x))
    mean, var = mean.to(values.dtype), var.to(values.dtype)
    # an example far from the moving mean raises σ² with it: where the moving statistics are near 0 in this sense, so
    # are the mixed ones, unless they are nearly the example's alone
    careful = alpha > 0.9 or not near_zero(mean, var, eps)
    own_mean, own_var = layout.moments(values, len(x), careful)
    own_mean, own_var = pool(own_mean, own_var, groups)
    mean, var = pool(mean[None], var[None], groups)
    gap = own_mean - mean
    mu = torch.add(mean, gap, alpha=alpha)
    var = torch.lerp(var, own_var, alpha).addcmul_(gap, gap, value=alpha * (1 - alpha))
    affine = [t if t is None else t.to(values.dtype) for t in (weight, bias)]
    return layout.normalized(values, mu, var, *affine, eps).to(x.dtype)


def _dense(x: Tensor) -> tuple[Tensor, ModuleType]:
    """x in a layout with kernels, and those."""
    if is_channels_last(x) or (x.is_contiguous() and x.shape[2:].numel() == 1):  # one position: both at once
        return x, _columns
    return x.contiguous(), _rows
