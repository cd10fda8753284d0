"""Small arithmetic with the moments of blocks and with the sums of a backward pass."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

_NEAR = 16.0


def near_zero(mean: Tensor, var: Tensor, eps: float) -> bool:
    """Whether E[x²] - E[x]² is a good variance everywhere: |mean| at most 4 standard deviations."""
    return mean.square().sub_(var, alpha=_NEAR).max().item() <= _NEAR * eps


def exact_moments(
    moments: Callable[[Tensor, int, bool], tuple[Tensor, Tensor]], x: Tensor, blocks: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance of the blocks by `moments(x, blocks, careful)`, careful only where it has to be."""
    mean, var = moments(x, blocks, False)
    return (mean, var) if near_zero(mean, var, eps) else moments(x, blocks, True)


def merge(mean: Tensor, var: Tensor, parts: int) -> tuple[Tensor, Tensor]:
    """Moments (K, C) of equal blocks -> (P, C) of P equal parts, each of consecutive blocks."""
    if len(mean) == parts:
        return mean, var
    mean, var = mean.view(parts, -1, mean.shape[1]), var.view(parts, -1, var.shape[1])
    center = mean.mean(1, keepdim=True)
    return center[:, 0], (mean - center).square_().add_(var).mean(1)


def pool(mean: Tensor, var: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Moments (K, C) of channels -> (K, G) of channel groups."""
    if mean.shape[1] == groups:
        return mean, var
    mean, var = mean.unflatten(1, (groups, -1)), var.unflatten(1, (groups, -1))
    center = mean.mean(2, keepdim=True)
    return center[:, :, 0], (mean - center).square_().add_(var).mean(2)


def spread(values: Tensor, channels: int) -> Tensor:
    """(K, G) -> (K, C)."""
    blocks, groups = values.shape
    return values if groups == channels else values[:, :, None].expand(-1, -1, channels // groups).reshape(blocks, -1)


def scaled(values: Tensor, weight: Tensor | None, channels: int) -> Tensor:
    """values · γ: (K, G) -> (K, C)."""
    if weight is None or values.shape[1] == channels:
        return spread(values, channels) if weight is None else values * weight
    return (values[:, :, None] * weight.view(values.shape[1], -1)).view(-1, channels)


def backward_terms(
    dot: Tensor, total: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, values: int
) -> tuple[Tensor, Tensor, Tensor]:
    """a, b and c (K, C) of dx = a·dy + b·x + c, from Σ dy·x̂ and Σ dy (K, C) and the statistics (K, G).

    It is dx = rstd (γ dy - mean(γ dy) - x̂ mean(γ dy x̂)), the means over the `values` of a block and channel group.
    """
    channels, groups = dot.shape[1], mean.shape[1]
    if weight is not None:
        dot, total = dot * weight, total * weight
    if groups < channels:
        dot, total = (s.unflatten(1, (groups, -1)).sum(2) for s in (dot, total))
    share = rstd * (-1 / values)
    b = (share * dot).mul_(rstd)
    c = (share * total).addcmul_(b, mean, value=-1)
    return scaled(rstd, weight, channels), spread(b, channels), spread(c, channels)


def like(values: Tensor, x: Tensor) -> Tensor:
    """`values`, which lie in memory as x does, in the shape of x. No view: autograd takes none from a function."""
    return values.as_strided_(x.shape, x.stride())
