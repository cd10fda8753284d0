"""Fast ways on the CPU, composed of PyTorch's own kernels.

A tensor (N, C, *) is seen as K equal blocks of consecutive examples. How it lies in memory decides which kernels are
fast. Where channels come last, a block is a matrix (positions, C), and batch norm's own kernels for statistics and for
the sums of its backward take it as it is. Else each (example, channel) is a contiguous row, viewed as one of N·C
channels of a single example, so that one call of such a kernel does all rows.

Statistics and coefficients are (K, r, C): r = 1 where a block shares them, r = N / K where each example has its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._groups import is_channels_last, pool_channels, twice_differentiable

_LONG_ROW = 256  # positions from which group norm's kernel beats three simpler ones


class GroupedNormCPU(torch.autograd.Function):
    """`grouped_norm_plain` for equal blocks. Keeps x, and mean and deviation of each block, for backward."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, blocks: int, groups: int, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = dense(x)
        seen = moments(x, blocks)
        mean, var = _merge(seen.mean, seen.var, 1)
        batch_mean, batch_var = (s.view(-1) for s in _merge(mean, var, 0))
        mean, var = pool_channels(mean, var, groups)
        rstd = (var + eps).rsqrt()
        y = apply(seen, mean, rstd, weight, bias)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.geometry = blocks, groups, eps
        ctx.mark_non_differentiable(batch_mean, batch_var)
        return y, batch_mean, batch_var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, rstd = ctx.saved_tensors
        blocks, groups, eps = ctx.geometry
        if torch.is_grad_enabled():  # somebody differentiates twice
            found = twice_differentiable(grad, x, weight, bias, len(x) // blocks, blocks, groups, eps)
            return *found, None, None, None
        x = dense(x)
        grad = grad.contiguous(memory_format=torch.channels_last if is_columns(x) else torch.contiguous_format)
        dot, total = sums(grad, x, mean, rstd)  # Σ dy·x̂ and Σ dy, by block and channel
        d_weight = None if weight is None else dot.sum((0, 1))
        d_bias = None if bias is None else total.sum((0, 1))

        # dx = rstd (γ dy - mean(γ dy) - x̂ mean(γ dy x̂)), the means over the block, written as a·dy + b·x + c
        a = rstd if weight is None else rstd * weight
        values = x.numel() // (blocks * groups)
        if weight is not None:
            dot, total = dot * weight, total * weight
        b = (rstd.square() * _pool_sum(dot, groups)).mul_(-1 / values)
        c = (rstd * _pool_sum(total, groups)).mul_(-1 / values).addcmul_(b, mean, value=-1)
        return add_scaled(affine(grad, a, c), x, b), d_weight, d_bias, None, None, None


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


# -- layout ----------------------------------------------------------------------------------------------------------


def dense(x: Tensor) -> Tensor:
    return x if is_columns(x) else x.contiguous()


def is_columns(x: Tensor) -> bool:
    """Whether x is treated as matrices (positions, C); where there is one position, it is one either way."""
    return is_channels_last(x) or (x.is_contiguous() and x.shape[2:].numel() == 1)


def _columns(x: Tensor, blocks: int) -> Tensor:
    """x with channels last as (K, M, C), M the positions of all examples of a block."""
    return x.movedim(1, -1).reshape(blocks, -1, x.shape[1])


def _rows(x: Tensor) -> Tensor:
    """A contiguous x as (1, N·C, positions)."""
    return x.view(1, x.shape[0] * x.shape[1], -1)


def _of_rows(values: Tensor, x: Tensor) -> Tensor:
    """(K, r, C) -> (N·C,)."""
    blocks, _, channels = values.shape
    return values.expand(blocks, len(x) // blocks, channels).reshape(-1)


# -- statistics ------------------------------------------------------------------------------------------------------


class Moments(NamedTuple):
    """Mean and biased variance (K, r, C) of x, which is `base` · `unit` + `origin`."""

    base: Tensor
    unit: Tensor | None
    origin: Tensor | None
    mean: Tensor
    var: Tensor


def moments(x: Tensor, blocks: int) -> Moments:
    """Over each block where channels come last, else over each example. `base` may be written to unless it is x."""
    if is_columns(x):
        return _column_moments(x, blocks)
    n, channels = x.shape[:2]
    positions = x.shape[2:].numel()
    shape = (blocks, n // blocks, channels)
    if positions >= _LONG_ROW:
        tiny = 1e-10
        base, mean, rstd = torch.native_group_norm(x, None, None, n, channels, positions, channels, tiny)
        mean, unit = mean.view(shape), rstd.view(shape).reciprocal()
        return Moments(base, unit, mean, mean, (unit.square() - tiny).clamp_(min=0))
    mean = x.flatten(2).mean(2)
    base = x - mean.view(*mean.shape, *[1] * (x.dim() - 2))
    var = torch.linalg.vector_norm(base.flatten(2), dim=2).square_() / positions
    return Moments(base, None, mean.view(shape), mean.view(shape), var.view(shape))


def _column_moments(x: Tensor, blocks: int) -> Moments:
    columns = _columns(x, blocks)
    if _is_large(columns):
        parts = [torch.batch_norm_update_stats(part, None, None, 0.0) for part in columns.unbind()]
        mean, var = torch.stack([m for m, _ in parts]), torch.stack([v for _, v in parts])
        return Moments(x, None, None, mean[:, None], var[:, None])
    share = 1 / columns.shape[1]
    mean = columns.sum(1, keepdim=True).mul_(share)
    base = torch.empty_like(x)
    centred = torch.sub(columns, mean, out=_columns(base, blocks))
    return Moments(base, None, mean, mean, centred.square().sum(1, keepdim=True).mul_(share))


def _is_large(columns: Tensor) -> bool:
    """Whether a block pays for a call of its own; calls are dear where several threads have to meet."""
    values = 2**14 if torch.get_num_threads() == 1 else 2**17
    return len(columns) == 1 or columns.shape[1:].numel() >= values


def sums(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """Σ dy·x̂ and Σ dy (K, 1, C) of each block and channel, for statistics (K, 1, C)."""
    blocks = len(mean)
    if not is_columns(x):
        dot, total = _backward_sums(_rows(grad), _rows(x), _of_rows(mean, x), _of_rows(rstd, x))
        return tuple(s.view(blocks, -1, x.shape[1]).sum(1, keepdim=True) for s in (dot, total))  # type: ignore[return-value]
    grads, columns = _columns(grad, blocks), _columns(x, blocks)
    if _is_large(columns):
        each = zip(grads.unbind(), columns.unbind(), mean[:, 0].unbind(), rstd[:, 0].unbind(), strict=True)
        parts = [_backward_sums(*part) for part in each]
        return torch.stack([d for d, _ in parts])[:, None], torch.stack([t for _, t in parts])[:, None]
    total = grads.sum(1, keepdim=True)
    return ((grads * columns).sum(1, keepdim=True) - mean * total) * rstd, total


def _backward_sums(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """Σ dy·x̂ and Σ dy by channel: what batch norm's backward gives as gradients of γ and β."""
    only_sums = [False, True, True]
    _, dot, total = torch.ops.aten.native_batch_norm_backward(
        grad, x, None, None, None, mean, rstd, True, 0.0, only_sums
    )
    return dot, total


# -- maps ------------------------------------------------------------------------------------------------------------


def apply(seen: Moments, mean: Tensor, rstd: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """(x - mean) · rstd · γ + β, for statistics (K, r, C)."""
    scale = rstd if weight is None else rstd * weight
    shift = -mean * scale if seen.origin is None else (seen.origin - mean) * scale
    shift = shift if bias is None else shift + bias
    return affine(seen.base, scale if seen.unit is None else scale * seen.unit, shift, into_x=seen.origin is not None)


def affine(x: Tensor, scale: Tensor, shift: Tensor, into_x: bool = False) -> Tensor:
    """scale · x + shift, for coefficients (K, r, C)."""
    out = x if into_x else torch.empty_like(x)
    if is_columns(x):
        blocks = len(shift)
        torch.addcmul(shift, _columns(x, blocks), scale, out=_columns(out, blocks))
        return out
    weight, bias = _of_rows(scale, x), _of_rows(shift, x)
    mean, var, unused = torch.zeros_like(bias), torch.ones_like(bias), bias.new_empty(0)
    torch.native_batch_norm(_rows(x), weight, bias, mean, var, False, 0.0, 0.0, out=(_rows(out), unused, unused))
    return out


def add_scaled(out: Tensor, x: Tensor, scale: Tensor) -> Tensor:
    """out + scale · x, in place, for coefficients (K, 1, C)."""
    blocks = len(scale)
    if is_columns(x):
        _columns(out, blocks).addcmul_(_columns(x, blocks), scale)
    else:
        _rows(out)[0].addcmul_(_rows(x)[0], _of_rows(scale, x)[:, None])
    return out
