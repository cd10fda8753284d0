"""Fast ways on the CPU, composed of PyTorch's own kernels.

Three of them do the work, each in one pass over memory: the mean over positions, the affine map of batch norm's
inference, and the two sums of batch norm's backward. The layout decides how they are called. Contiguous
(N, C, H, W) tensors are viewed as (1, N·C, H·W), so that every example has its own "channels" in one call;
channels_last ones cannot be, and are cut into blocks of examples, which are views too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._groups import broadcast, grouped_norm_plain, is_channels_last


class GroupedNormCPU(torch.autograd.Function):
    """`grouped_norm_plain` at the speed of batch norm. Keeps x, and mean and deviation of each block, for backward."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, size: int, blocks: int, groups: int, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = dense(x)
        block = block_of_example(len(x), size, blocks)
        if is_channels_last(x):
            mean, var = part_moments(x, size, blocks)
        else:
            centred, center, spread = centred_examples(x)
            mean = _block_mean(center, block, blocks)
            var = _block_mean(spread + (center - mean[block]).square(), block, blocks)
        share = torch.bincount(block).to(x.dtype) / len(x)
        batch_mean = share @ mean
        batch_var = share @ (var + (mean - batch_mean).square())

        mean, var = pool_channels(mean, var, groups)
        rstd = (var + eps).rsqrt()
        scale = rstd if weight is None else rstd * weight
        beta = 0 if bias is None else bias
        if is_channels_last(x):
            y = affine(x, scale[block], (beta - mean * scale)[block])
        else:
            y = affine(centred, scale[block], beta + (center - mean[block]) * scale[block], out=centred)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.geometry = size, blocks, groups, eps
        ctx.mark_non_differentiable(batch_mean, batch_var)
        return y, batch_mean, batch_var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, rstd = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody differentiates twice
            return *twice_differentiable(grad, x, weight, bias, *ctx.geometry), None, None, None, None
        size, blocks, groups, _eps = ctx.geometry
        x = dense(x)
        grad = grad.contiguous(memory_format=torch.channels_last if is_channels_last(x) else torch.contiguous_format)
        block = block_of_example(len(x), size, blocks)
        if is_channels_last(x):
            dot, total = part_sums(grad, x, mean, rstd, size, blocks)  # Σ dy·x̂ and Σ dy of each block and channel
        else:
            dot, total = (
                torch.zeros_like(mean).index_add_(0, block, s) for s in example_sums(grad, x, mean[block], rstd[block])
            )
        d_weight, d_bias = (None if weight is None else dot.sum(0)), (None if bias is None else total.sum(0))

        # dx = rstd (γ dy - mean(γ dy) - x̂ mean(γ dy x̂)), the means over the block; as a map a·dy + b·x + c
        if weight is not None:
            dot, total = dot * weight, total * weight
        values = torch.bincount(block)[:, None] * (x[0].numel() // groups)
        dot, total = (spread_groups(s.unflatten(1, (groups, -1)).sum(2) / values, x.shape[1]) for s in (dot, total))
        b = -(rstd.square()) * dot
        c = -rstd * total - b * mean
        d_x = affine(grad, (rstd if weight is None else rstd * weight)[block], c[block])
        d_x.addcmul_(x, broadcast(b[block], x))
        return d_x, d_weight, d_bias, None, None, None, None


def twice_differentiable(
    grad: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, *geometry: Any
) -> tuple[Tensor | None, ...]:
    """Gradients for x, γ and β that have gradients themselves, by way of the plain formula."""
    y = grouped_norm_plain(x, weight, bias, *geometry)[0]
    wanted = [t for t in (x, weight, bias) if t is not None and t.requires_grad]
    found = iter(torch.autograd.grad(y, wanted, grad, create_graph=True))
    return tuple(next(found) if t is not None and t.requires_grad else None for t in (x, weight, bias))


# -- layout ----------------------------------------------------------------------------------------------------------


def dense(x: Tensor) -> Tensor:
    return x if is_channels_last(x) else x.contiguous()


def block_of_example(n: int, size: int, blocks: int) -> Tensor:
    """The block (N,) of each example: `size` each, the rest in the last one."""
    return torch.arange(n).div_(size, rounding_mode="floor").clamp_(max=blocks - 1)


def _block_mean(values: Tensor, block: Tensor, blocks: int) -> Tensor:
    """(N, C) -> (blocks, C)."""
    total = values.new_zeros(blocks, values.shape[1]).index_add_(0, block, values)
    return total / torch.bincount(block)[:, None]


def _parts(x: Tensor, size: int, blocks: int) -> list[Tensor]:
    last = (blocks - 1) * size
    return [*x[:last].split(size), x[last:]] if last else [x]


def _rows(x: Tensor) -> Tensor:
    """A contiguous (N, C, *) tensor as (1, N·C, positions)."""
    return x.view(1, x.shape[0] * x.shape[1], -1)


# -- statistics ------------------------------------------------------------------------------------------------------


def centred_examples(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A contiguous x without the mean of each example and channel, that mean, and the biased variance (N, C)."""
    center = x.flatten(2).mean(2)
    centred = x - broadcast(center, x)
    rows = centred.flatten(2)
    return centred, center, torch.linalg.vector_norm(rows, dim=2).square_() / rows.shape[2]


def part_moments(x: Tensor, size: int, blocks: int) -> tuple[Tensor, Tensor]:
    """Mean and biased variance (blocks, C) of a channels_last x."""
    moments = [torch.batch_norm_update_stats(part, None, None, 0.0) for part in _parts(x, size, blocks)]
    return torch.stack([m for m, _ in moments]), torch.stack([v for _, v in moments])


def pool_channels(mean: Tensor, var: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Moments (…, C) of channels -> those of the channel group they belong to, (…, C) again."""
    channels = mean.shape[-1]
    if groups == channels:
        return mean, var
    mean, var = mean.unflatten(-1, (groups, -1)), var.unflatten(-1, (groups, -1))
    center = mean.mean(-1, keepdim=True)
    var = (var + (mean - center).square()).mean(-1)
    return spread_groups(center.squeeze(-1), channels), spread_groups(var, channels)


def spread_groups(values: Tensor, channels: int) -> Tensor:
    """(…, groups) -> (…, C)."""
    return values.repeat_interleave(channels // values.shape[-1], -1)


def example_sums(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """Σ dy·x̂ and Σ dy over positions (N, C), for contiguous tensors."""
    dot, total = _sums(_rows(grad), _rows(x), mean.flatten(), rstd.flatten())
    return dot.view_as(mean), total.view_as(mean)


def part_sums(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, size: int, blocks: int) -> tuple[Tensor, Tensor]:
    """Σ dy·x̂ and Σ dy over each block (blocks, C), for channels_last tensors."""
    each = zip(_parts(grad, size, blocks), _parts(x, size, blocks), mean.unbind(), rstd.unbind(), strict=True)
    sums = [_sums(*part) for part in each]
    return torch.stack([d for d, _ in sums]), torch.stack([t for _, t in sums])


def _sums(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """Σ dy·x̂ and Σ dy for each channel: what batch norm's backward gives as gradients of γ and β."""
    only_sums = [False, True, True]
    _, dot, total = torch.ops.aten.native_batch_norm_backward(
        grad, x, None, None, None, mean, rstd, True, 0.0, only_sums
    )
    return dot, total


# -- the map ---------------------------------------------------------------------------------------------------------


def affine(x: Tensor, scale: Tensor, shift: Tensor, out: Tensor | None = None) -> Tensor:
    """scale · x + shift, one number for each example and channel (N, C); a contiguous result may go into `out`."""
    if is_channels_last(x):
        return torch.addcmul(broadcast(shift, x), x, broadcast(scale, x))
    out = torch.empty_like(x) if out is None else out
    zeros, ones, unused = torch.zeros(scale.numel(), dtype=x.dtype), torch.ones_like(scale).view(-1), x.new_empty(0)
    torch.native_batch_norm(
        _rows(x), scale.reshape(-1), shift.reshape(-1), zeros, ones, False, 0.0, 0.0, out=(_rows(out), unused, unused)
    )
    return out
