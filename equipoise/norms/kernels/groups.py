"""Normalization over blocks of examples × channels: batch, ghost, group and batch-group norm are four cases of it.

examples = N, groups = C is batch norm; groups = C ghost batch norm; examples = 1 group norm; examples = 2 batch-group
norm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ... import native
from ...core import full_precision
from .device import is_mapped, is_plain, on_triton


class Block(NamedTuple):
    """What one mean and one variance are taken over: consecutive examples, C / groups consecutive channels, everywhere.

    Blocks have at least two values where the batch has them. `alone` lets an example stay by itself all the same.
    """

    examples: int
    groups: int
    alone: bool = False


class PerChannel(NamedTuple):
    """What inference normalizes a channel with (C,): the moving mean and variance, γ and β."""

    mean: Tensor
    var: Tensor
    weight: Tensor | None
    bias: Tensor | None


class Statistics(NamedTuple):
    """Mean and biased variance (P, C) of the parts of a batch: `size` examples each, in the last all that is left.

    `values` is how many values of a channel the batch has, where other processes have some of them.
    """

    mean: Tensor
    var: Tensor
    size: int
    examples: int
    values: Tensor | None = None

    def merged(self) -> tuple[Tensor, Tensor]:
        """Mean and biased variance (C,) of the whole batch."""
        if len(self.mean) == 1:
            return self.mean[0], self.var[0]
        share = self._shares()
        mean = (share * self.mean).sum(0)
        return mean, (self.mean - mean).square_().add_(self.var).mul_(share).sum(0)

    def _shares(self) -> Tensor | float:
        """How much of the batch each part is, (P, 1) or one number for all."""
        share = self.size / self.examples
        if len(self.mean) * self.size == self.examples:
            return share
        shares = self.mean.new_full((len(self.mean), 1), share)
        shares[-1] = 1 - (len(self.mean) - 1) * share
        return shares


def grouped_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, block: Block, eps: float
) -> tuple[Tensor, Statistics]:
    """x (N, C, *) normalized block by block; and, without gradient, the statistics of the channels in the batch.

    Takes the fastest way there is: on a GPU fused kernels, or batch norm where there is one block for each channel; on
    the CPU kernels in C, or PyTorch's on suitable views; else `grouped_norm_plain`, which is the reference for all.
    """
    n, groups = x.shape[0], block.groups
    size, blocks = split_into(block, x)
    one_channel = groups == x.shape[1]
    if x.device.type != "cpu" and one_channel and blocks == 1 and x.numel() > groups:
        return whole_batch_norm(x, weight, bias, eps)
    if on_triton(x, weight, bias) and x.dtype != torch.float64:
        if one_channel:
            from .triton import GhostNormTriton

            y, mean, var = GhostNormTriton.apply(x, weight, bias, size, blocks, eps)
            return y, Statistics(mean, var, size, n)
        from .triton_blocks import BlockNormTriton

        y, mean, var = BlockNormTriton.apply(x, weight, bias, size, blocks, groups, eps)
        return y, Statistics(mean, var, 1, n)
    if x.device.type == "cpu" and is_plain(x, weight, bias):
        from .cpu import block_norm

        return block_norm(x, weight, bias, size, blocks, groups, eps)
    y, mean, var = grouped_norm_plain(x, weight, bias, size, blocks, groups, eps)
    return y, Statistics(mean[None], var[None], n, n)


def grouped_norm_relu(
    x: Tensor, shortcut: Tensor | None, weight: Tensor | None, bias: Tensor | None, block: Block, eps: float
) -> tuple[Tensor, Statistics]:
    """relu(`grouped_norm` + shortcut) by the kernels that do it as one, for maps that these take."""
    n, groups = x.shape[0], block.groups
    size, blocks = split_into(block, x)
    if x.device.type == "cpu":
        from .cpu import native_block_norm

        return native_block_norm(x, weight, bias, size, blocks, groups, eps, relu=True, shortcut=shortcut)
    if groups == x.shape[1]:
        from .triton import NormReluTriton

        y, mean, var = NormReluTriton.apply(x, shortcut, weight, bias, size, blocks, eps)
        return y, Statistics(mean, var, size, n)
    from .triton_blocks import BlockNormTriton

    y, mean, var = BlockNormTriton.apply(x, weight, bias, size, blocks, groups, eps, True, shortcut)
    return y, Statistics(mean, var, 1, n)


def batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """PyTorch's batch norm over the whole batch, with mean and unbiased variance (C,) of the batch."""
    dtype = full_precision(x).dtype
    weight, bias = typed(weight, dtype), typed(bias, dtype)
    # with a momentum of 1 the kernel leaves the statistics of this batch in what it takes for moving averages
    mean, var = torch.zeros(2, x.shape[1], dtype=dtype, device=x.device).unbind()
    return F.batch_norm(x, mean, var, weight, bias, True, 1.0, eps), mean, var


def whole_batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Statistics]:
    """Batch norm over the whole batch, and its statistics."""
    n, channels = x.shape[:2]
    if native.suits(x, weight, bias):
        from .cpu import native_block_norm

        return native_block_norm(x, weight, bias, n, 1, channels, eps)
    if is_mapped():  # to batch norm the statistics would be a buffer that all share
        y, mean, var = grouped_norm_plain(x, weight, bias, n, 1, channels, eps)
        return y, Statistics(mean[None], var[None], n, n)
    y, mean, var = batch_norm(x, weight, bias, eps)
    return y, Statistics(mean[None], var[None] * (1 - channels / x.numel()), n, n)


def grouped_norm_plain(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, size: int, blocks: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The formula: (x - mean) / sqrt(variance + eps) over each block, then γ and β of the channel."""
    values, cut = full_precision(x), (blocks - 1) * size
    if blocks == 1 or x.shape[0] == size * blocks:
        y = _standardized(values, blocks, groups, eps)
    else:
        first, last = values[:cut], values[cut:]
        y = torch.cat([_standardized(first, blocks - 1, groups, eps), _standardized(last, 1, groups, eps)])
    y = affine(y, weight, bias)
    with torch.no_grad():
        mean, var = moments(values)
    y = y.to(x.dtype)
    return y if is_mapped() else y.contiguous(memory_format=layout_of(x)), mean, var


@torch.no_grad()
def moments_of_batch(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and biased variance (C,) of all of x, in float32 at least, without gradient; for a norm with this ε."""
    if x.numel() and is_plain(x):
        if x.device.type == "cpu":
            from .cpu import batch_moments

            return batch_moments(x, eps)
        if x.is_cuda:  # what PyTorch's batch norm begins with there
            mean, var = torch.batch_norm_update_stats(x, None, None, 0.0)
            return mean, var
    return moments(full_precision(x))


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance (C,) of all of x."""
    var, mean = torch.var_mean(x, [d for d in range(x.dim()) if d != 1], correction=0)
    return mean, var


def fixed_norm(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """x normalized with the given mean and variance (C,). They are float32 for half-precision x, and so γ and β."""
    dtype = full_precision(x).dtype
    mean, var, weight, bias = (typed(t, dtype) for t in (mean, var, weight, bias))
    return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)


def affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """x · γ + β."""
    y = x if weight is None else x * broadcast(weight[None], x)
    return y if bias is None else y + broadcast(bias[None], x)


def typed(values: Any, dtype: torch.dtype) -> Any:
    """`values`, where there are any, in another type."""
    return values if values is None or values.dtype == dtype else values.to(dtype)


def layout_of(x: Tensor) -> torch.memory_format:
    """Channels last where x lies so, else contiguous: the layouts that kernels know."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim())
    return last if last is not None and x.is_contiguous(memory_format=last) else torch.contiguous_format


def is_channels_last(x: Tensor) -> bool:
    return layout_of(x) is not torch.contiguous_format


def pool_channels(mean: Tensor, var: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Moments (…, C) of channels -> those of the channel group they belong to, (…, C) again."""
    mean, var = mean.unflatten(-1, (groups, -1)), var.unflatten(-1, (groups, -1))
    center = mean.mean(-1, keepdim=True).expand_as(mean)
    var = (var + (mean - center).square()).mean(-1, keepdim=True).expand_as(mean)
    return center.flatten(-2), var.flatten(-2)


def twice_differentiable(
    grad: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, *geometry: Any
) -> tuple[Tensor | None, ...]:
    """Gradients for x, γ and β that have gradients themselves, by way of the plain formula."""
    with torch.enable_grad():
        y = grouped_norm_plain(x, weight, bias, *geometry)[0]
    wanted = [t for t in (x, weight, bias) if t is not None and t.requires_grad]
    found = iter(torch.autograd.grad(y, wanted, grad, create_graph=torch.is_grad_enabled()))
    return tuple(next(found) if t is not None and t.requires_grad else None for t in (x, weight, bias))


def relu_twice_differentiable(
    grad: Tensor, x: Tensor, y: Tensor | None, weight: Tensor | None, bias: Tensor | None, *geometry: Any
) -> tuple[Tensor | None, ...]:
    """The same for x, the shortcut, γ and β of relu(norm + shortcut); y is the result where there was a shortcut."""
    with torch.no_grad():
        closed = (grouped_norm_plain(x, weight, bias, *geometry)[0] if y is None else y) <= 0
    behind = grad.masked_fill(closed, 0)
    of_norm: tuple[Tensor | None, ...] = (None, None, None)
    if any(t is not None and t.requires_grad for t in (x, weight, bias)):  # else only the shortcut has a gradient
        of_norm = twice_differentiable(behind, x, weight, bias, *geometry)
    return of_norm[0], None if y is None else behind, *of_norm[1:]


def _standardized(x: Tensor, blocks: int, groups: int, eps: float) -> Tensor:
    """x in `blocks` equal blocks, each of mean 0 and variance 1."""
    block = x.unflatten(1, (groups, -1)).unflatten(0, (blocks, -1))
    var, mean = torch.var_mean(block, [1, *range(3, block.dim())], correction=0, keepdim=True)
    return ((block - mean) * (var + eps).rsqrt()).flatten(0, 1).flatten(1, 2)


def broadcast(values: Tensor, x: Tensor) -> Tensor:
    """(N, C) -> (N, C, 1, …), to broadcast against x."""
    return values[(..., *[None] * (x.dim() - 2))]


def split_into(block: Block, x: Tensor) -> tuple[int, int]:
    """Examples in a block of x, and the number of blocks."""
    return split_examples(len(x), block.examples, 2 if block.alone else x.shape[1:].numel() // block.groups)


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
