"""The kernels of `_blockwise` on the CPU, which are PyTorch's own.

How a tensor lies in memory decides which of them are fast. Where channels come last, a block is a matrix
(positions, C), and batch norm's kernels for statistics and for the sums of its backward take it as it is. Else each
(example, channel) is a contiguous row, viewed as one of N·C channels of a single example, so that one call of such a
kernel does all rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._blockwise import Moments
from ._groups import is_channels_last

_LONG_ROW = 256  # positions from which group norm's kernel beats three simpler ones


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


def moments(x: Tensor, blocks: int) -> Moments:
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
        grad, x, None, None, None, mean, rstd, True, 1e-30, only_sums
    )
    return dot, total


# -- maps ------------------------------------------------------------------------------------------------------------


def affine(x: Tensor, scale: Tensor, shift: Tensor, into_x: bool = False) -> Tensor:
    out = x if into_x else torch.empty_like(x)
    if is_columns(x):
        blocks = len(shift)
        torch.addcmul(shift, _columns(x, blocks), scale, out=_columns(out, blocks))
        return out
    weight, bias = _of_rows(scale, x), _of_rows(shift, x)
    mean, var, unused = torch.zeros_like(bias), torch.ones_like(bias), bias.new_empty(0)
    torch.native_batch_norm(_rows(x), weight, bias, mean, var, False, 0.0, 1e-30, out=(_rows(out), unused, unused))
    return out


def combine(grad: Tensor, a: Tensor, x: Tensor, b: Tensor, c: Tensor) -> Tensor:
    dx = affine(grad, a, c)
    blocks = len(b)
    if is_columns(x):
        _columns(dx, blocks).addcmul_(_columns(x, blocks), b)
    else:
        _rows(dx)[0].addcmul_(_rows(x)[0], _of_rows(b, x)[:, None])
    return dx
