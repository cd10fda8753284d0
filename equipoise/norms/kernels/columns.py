"""Kernels for channels-last tensors: a block of examples is a matrix (positions, C)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .moments import backward_terms, exact_moments, like, pool, scaled, spread

_TALL = 1024  # positions from which the forward of PyTorch's group norm is fast for groups of one channel
_WIDE = 8  # channels in a group from which its backward is fast
_LARGE = 2**17  # values of a block from which it pays for calls of its own
_CACHED = 2**19  # values that are read again before they leave the cache
_VECTORS = 64  # channels from which average pooling is a faster mean
_ONLY_SUMS = [False, True, True]  # of a backward: Σ dy·x̂ and Σ dy, the gradients of γ and β


def forward(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, blocks: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """y; mean and 1 / deviation (K, G) of the blocks; mean and variance (P, C) of equal parts of the batch."""
    channels, positions = x.shape[1], x.numel() // (blocks * x.shape[1])
    if groups == channels and positions >= _TALL:
        # to group norm a block of examples is one example with a larger image
        image = _image(_columns(x, blocks))
        y, mean, rstd = torch.native_group_norm(image, weight, bias, blocks, channels, positions, groups, eps)
        if _is_near(mean, rstd):
            return like(y, x), mean, rstd, mean, rstd.pow(-2).sub_(eps)
    mean, var = exact_moments(moments, x, blocks, eps)
    block_mean, block_var = pool(mean, var, groups)
    y = normalized(x, block_mean, block_var, weight, bias, eps)
    return y, block_mean, (block_var + eps).rsqrt_(), mean, var


def moments(x: Tensor, blocks: int, careful: bool) -> tuple[Tensor, Tensor]:
    """Mean and variance (K, C); `careful` about a mean much larger than the deviation."""
    columns = _columns(x, blocks)
    if _is_large(columns):
        parts = [torch.batch_norm_update_stats(part, None, None, 0.0) for part in columns.unbind()]
        return torch.stack([m for m, _ in parts]), torch.stack([v for _, v in parts])
    mean = _mean(columns)
    if careful:
        return mean, _mean((columns - mean[:, None]).square_())
    return mean, _mean_product(columns, columns).addcmul_(mean, mean, value=-1)


def normalized(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """(x - mean) / sqrt(var + eps) · γ + β, for statistics (K, G)."""
    rstd = (var + eps).rsqrt_()
    scale, shift = (scaled(s, weight, x.shape[1]) for s in (rstd, -mean * rstd))
    shift = shift if bias is None else shift + bias
    return like(torch.addcmul(shift[:, None], _columns(x, len(mean)), scale[:, None]), x)


def backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, γ and β."""
    (blocks, groups), channels = mean.shape, x.shape[1]
    positions = x.numel() // (blocks * channels)
    grads, columns = _columns(grad, blocks), _columns(x, blocks)
    is_wide = channels // groups >= _WIDE and not _is_large(columns)
    if is_wide and weight is not None and _is_near(mean, rstd):
        dx, d_weight, d_bias = torch.ops.aten.native_group_norm_backward(
            _image(grads), _image(columns), mean, rstd, weight, blocks, channels, positions, groups, [True, True, True]
        )
        return like(dx, x), d_weight, d_bias
    dot, total = _sums(grads, columns, spread(mean, channels), spread(rstd, channels))
    a, b, c = backward_terms(dot, total, weight, mean, rstd, positions * channels // groups)
    dx = torch.addcmul(c[:, None], grads, a[:, None]).addcmul_(columns, b[:, None])
    return like(dx, x), dot.sum(0), total.sum(0)


def _sums(grads: Tensor, columns: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """Σ dy·x̂ and Σ dy (K, C)."""
    if not _is_large(columns):
        total, dot = _mean(grads), _mean_product(grads, columns)
        dot.addcmul_(mean, total, value=-1).mul_(rstd)
        return dot.mul_(columns.shape[1]), total.mul_(columns.shape[1])
    each = zip(grads.unbind(), columns.unbind(), mean.unbind(), rstd.unbind(), strict=True)
    parts = [
        torch.ops.aten.native_batch_norm_backward(g, x, None, None, None, m, r, True, 1e-30, _ONLY_SUMS)
        for g, x, m, r in each
    ]
    return torch.stack([dot for _, dot, _ in parts]), torch.stack([total for _, _, total in parts])


def _mean_product(a: Tensor, b: Tensor) -> Tensor:
    """Mean of a·b over the positions, (K, C), a few blocks at a time."""
    step = max(1, _CACHED // a[0].numel())
    if step >= len(a):
        return _mean(a * b)
    return torch.cat([_mean(p * q) for p, q in zip(a.split(step), b.split(step), strict=True)])


def _mean(columns: Tensor) -> Tensor:
    """Mean over the positions, (K, C)."""
    if columns.shape[2] < _VECTORS:
        return columns.mean(1)
    return F.avg_pool2d(_image(columns), (1, columns.shape[1])).flatten(1)


def _is_near(mean: Tensor, rstd: Tensor) -> bool:
    """Whether group norm's kernels, which take the variance as E[x²] - E[x]², are exact enough."""
    return (mean * rstd).abs_().max().item() <= 4


def _is_large(columns: Tensor) -> bool:
    return len(columns) == 1 or columns.stride(0) >= _LARGE


def _columns(x: Tensor, blocks: int) -> Tensor:
    """x as (K, positions, C)."""
    channels, values = x.shape[1], x.numel() // blocks
    return x.as_strided((blocks, values // channels, channels), (values, channels, 1))


def _image(columns: Tensor) -> Tensor:
    """(K, positions, C) as (K, C, 1, positions), channels last."""
    return columns[:, None].permute(0, 3, 1, 2)
