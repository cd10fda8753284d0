"""Kernels for contiguous tensors: each (example, channel) is a contiguous row.

The rows are viewed as N·C channels of a single example, so that one call of a kernel of batch norm does them all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .moments import backward_terms, exact_moments, like, merge, pool, spread


def forward(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, blocks: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """y; mean and 1 / deviation (K, G) of the blocks; mean and variance (P, C) of equal parts of the batch."""
    mean, var = exact_moments(moments, x, blocks, eps)
    block_mean, block_var = pool(mean, var, groups)
    y = normalized(x, block_mean, block_var, weight, bias, eps)
    return y, block_mean, (block_var + eps).rsqrt_(), mean, var


def moments(x: Tensor, blocks: int, careful: bool) -> tuple[Tensor, Tensor]:
    """Mean and variance (K, C); `careful` about a mean much larger than the deviation."""
    n, channels = x.shape[:2]
    positions = x[0, 0].numel()
    if careful:
        rows = x.flatten(2)
        mean = rows.mean(2)
        var = torch.linalg.vector_norm(rows - mean[:, :, None], dim=2).square_().div_(positions)
    else:  # Σ x·x and Σ x in one reading
        square, mean = _sums(x, x, x.new_zeros(n * channels), x.new_ones(n * channels))
        mean = mean.view(n, channels).div_(positions)
        var = square.view(n, channels).div_(positions).addcmul_(mean, mean, value=-1)
    return merge(mean, var, blocks)


def normalized(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """(x - mean) / sqrt(var + eps) · γ + β, for statistics (K, G)."""
    mean, var = _of_rows(mean, x), _of_rows(var, x)
    gamma, beta = (None if t is None else t.repeat(len(x)) for t in (weight, bias))
    return like(torch.native_batch_norm(_rows(x), gamma, beta, mean, var, False, 0.0, eps)[0], x)


def backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, γ and β."""
    each = _sums(grad, x, _of_rows(mean, x), _of_rows(rstd, x))
    dot, total = (s.view(len(mean), -1, x.shape[1]).sum(1) for s in each)
    a, b, c = (_of_rows(s, x) for s in backward_terms(dot, total, weight, mean, rstd, x.numel() // mean.numel()))
    dx = torch.native_batch_norm(_rows(grad), a, c, torch.zeros_like(a), torch.ones_like(a), False, 0.0, 1e-30)[0]
    dx[0].addcmul_(_rows(x)[0], b[:, None])
    return like(dx, x), dot.sum(0), total.sum(0)


def _sums(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """Σ dy·x̂ and Σ dy of each row: to batch norm's backward they are the gradients of γ and β."""
    _, dot, total = torch.ops.aten.native_batch_norm_backward(
        _rows(grad), _rows(x), None, None, None, mean, rstd, True, 1e-30, [False, True, True]
    )
    return dot, total


def _rows(x: Tensor) -> Tensor:
    return x.view(1, x.shape[0] * x.shape[1], -1)


def _of_rows(values: Tensor, x: Tensor) -> Tensor:
    """(K, G) or (K, C) -> (N·C,)."""
    return spread(values, x.shape[1])[:, None].expand(-1, len(x) // len(values), -1).reshape(-1)
