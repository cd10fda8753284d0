"""Normalization over blocks of examples × channels: batch, ghost, group and batch-group norm are four cases of it.

A *block* is what one mean and one variance are taken over: `examples` consecutive examples and C / `groups`
consecutive channels at all positions. examples = N, groups = C is batch norm; groups = C ghost batch norm;
examples = 1 group norm; examples = 2 batch-group norm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..core import full_precision
from ._device import on_triton


def grouped_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, examples: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """x (N, C, *) normalized block by block, and E[x] and the biased variance (C,) of the whole batch, without gradient.

    Takes the fastest way there is: fused kernels for ghosts on a GPU, PyTorch's own kernels on the CPU, or
    `grouped_norm_plain`, which is the reference for both.
    """
    size, blocks = split_examples(len(x), examples, x[0].numel() // groups)
    if torch.compiler.is_compiling():
        return grouped_norm_plain(x, weight, bias, size, blocks, groups, eps)
    if x.device.type == "cpu":
        from ._cpu import GroupedNormCPU

        wide = (t if t is None else full_precision(t) for t in (x, weight, bias))
        y, mean, var = GroupedNormCPU.apply(*wide, size, blocks, groups, eps)
        return y.to(x.dtype), mean, var
    if on_triton(x) and groups == x.shape[1] and x.dtype != torch.float64:
        from ._triton import GhostNormTriton

        return GhostNormTriton.apply(x, weight, bias, size, blocks, eps)
    return grouped_norm_plain(x, weight, bias, size, blocks, groups, eps)


def grouped_norm_plain(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, size: int, blocks: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The formula: (x - mean) / sqrt(variance + eps) over each block, then γ and β of the channel."""
    values = full_precision(x).flatten(2)
    first, last = values[: (blocks - 1) * size], values[(blocks - 1) * size :]
    parts = []
    for part, count in ((first, blocks - 1), (last, 1)):
        if count:
            block = part.reshape(count, len(part) // count, groups, -1)
            var, mean = torch.var_mean(block, (1, 3), correction=0, keepdim=True)
            parts.append(((block - mean) * (var + eps).rsqrt()).reshape(part.shape))
    y = torch.cat(parts)
    if weight is not None:
        y = y * weight[:, None]
    if bias is not None:
        y = y + bias[:, None]
    with torch.no_grad():
        var, mean = torch.var_mean(values, (0, 2), correction=0)
    return y.to(x.dtype).view(x.shape), mean, var


def split_examples(n: int, examples: int, values: int) -> tuple[int, int]:
    """Examples in a block and the number of blocks; the last block has what is left, or one example more.

    An example brings `values` to a statistic. None is taken over a single value where that can be helped: with one
    value an example, blocks have at least two, and a single last example joins the block before.

    >>> split_examples(10, 4, values=49), split_examples(9, 4, values=49), split_examples(9, 4, values=1)
    ((4, 3), (4, 3), (4, 2))
    """
    least = 2 if values == 1 else 1
    size = min(max(examples, least), n)
    blocks = -(-n // size)
    if blocks > 1 and n - (blocks - 1) * size < least:
        blocks -= 1
    return size, blocks


def fit_groups(num_features: int, groups: int) -> int:
    """The largest number of equal channel groups that is not above `groups`.

    >>> fit_groups(64, 32), fit_groups(48, 32), fit_groups(16, 32), fit_groups(7, 4)
    (32, 24, 16, 1)
    """
    return next(g for g in range(min(groups, num_features), 0, -1) if num_features % g == 0)
