"""Normalization over equal blocks with the formula written out for backward too, on whatever kernels a device has.

A tensor (N, C, *) is seen as K equal blocks of consecutive examples. Statistics and coefficients are (K, r, C): r = 1
where a block shares them, r = N / K where each of its examples has its own. `Kernels` is what a device brings:
`_cpu` is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ._groups import is_channels_last, pool_channels, twice_differentiable


class Moments(NamedTuple):
    """Mean and biased variance (K, r, C) of x, which is `base` · `unit` + `origin`."""

    base: Tensor
    unit: Tensor | None
    origin: Tensor | None
    mean: Tensor
    var: Tensor


class Kernels(Protocol):
    """Each goes over its tensors once or twice."""

    def dense(self, x: Tensor) -> Tensor:
        """x in a layout that the others take."""

    def moments(self, x: Tensor, blocks: int) -> Moments:
        """Over each block, or over each example, as it is faster. `base` may be written to unless it is x."""

    def sums(self, grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
        """Σ dy·x̂ and Σ dy (K, 1, C) of each block and channel, for statistics (K, 1, C)."""

    def affine(self, x: Tensor, scale: Tensor, shift: Tensor, into_x: bool = False) -> Tensor:
        """scale · x + shift, for coefficients (K, r, C)."""

    def combine(self, grad: Tensor, a: Tensor, x: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """a · dy + b · x + c, for coefficients (K, 1, C)."""


class BlockNorm(torch.autograd.Function):
    """`grouped_norm_plain` for equal blocks. Keeps x, and mean and deviation of each block, for backward."""

    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        blocks: int,
        groups: int,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = kernels.dense(x)
        seen = kernels.moments(x, blocks)
        mean, var = _merge(seen.mean, seen.var, 1)
        batch_mean, batch_var = (s.view(-1) for s in _merge(mean, var, 0))
        mean, var = pool_channels(mean, var, groups)
        rstd = (var + eps).rsqrt()
        y = normalized(kernels, seen, mean, rstd, weight, bias)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.kernels, ctx.geometry = kernels, (blocks, groups, eps)
        ctx.mark_non_differentiable(batch_mean, batch_var)
        return y, batch_mean, batch_var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, rstd = ctx.saved_tensors
        blocks, groups, eps = ctx.geometry
        if torch.is_grad_enabled():  # somebody differentiates twice
            found = twice_differentiable(grad, x, weight, bias, len(x) // blocks, blocks, groups, eps)
            return None, *found, None, None, None
        x = ctx.kernels.dense(x)
        grad = grad.contiguous(memory_format=torch.channels_last if is_channels_last(x) else torch.contiguous_format)
        dot, total = ctx.kernels.sums(grad, x, mean, rstd)
        d_weight = None if weight is None else dot.sum((0, 1)).to(weight.dtype)
        d_bias = None if bias is None else total.sum((0, 1)).to(bias.dtype)

        # dx = rstd (γ dy - mean(γ dy) - x̂ mean(γ dy x̂)), the means over the block, written as a·dy + b·x + c
        a = rstd if weight is None else rstd * weight
        values = x.numel() // (blocks * groups)
        if weight is not None:
            dot, total = dot * weight, total * weight
        b = (rstd.square() * _pool_sum(dot, groups)).mul_(-1 / values)
        c = (rstd * _pool_sum(total, groups)).mul_(-1 / values).addcmul_(b, mean, value=-1)
        return None, ctx.kernels.combine(grad, a, x, b, c), d_weight, d_bias, None, None, None


def normalized(
    kernels: Kernels, seen: Moments, mean: Tensor, rstd: Tensor, weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    """(x - mean) · rstd · γ + β, for statistics (K, r, C)."""
    scale = rstd if weight is None else rstd * weight
    shift = -mean * scale if seen.origin is None else (seen.origin - mean) * scale
    shift = shift if bias is None else shift + bias
    scale = scale if seen.unit is None else scale * seen.unit
    return kernels.affine(seen.base, scale, shift, into_x=seen.origin is not None)


def _merge(mean: Tensor, var: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Moments of parts of equal size along `dim` -> those of the whole."""
    if mean.shape[dim] == 1:
        return mean, var
    center = mean.mean(dim, keepdim=True)
    return center, (mean - center).square_().add_(var).mean(dim, keepdim=True)


def _pool_sum(values: Tensor, groups: int) -> Tensor:
    """Sums (K, 1, C) of channels -> those of their channel group, (K, 1, C) again."""
    width = values.shape[2] // groups
    return values if width == 1 else values.unflatten(2, (groups, width)).sum(3).repeat_interleave(width, 2)
