"""Batch norm over the examples of all processes of PyTorch's process group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed

from ...core import full_precision
from .groups import Statistics, affine, broadcast, moments


def has_company() -> bool:
    """Whether other processes train the same network."""
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


class _Gathered(torch.autograd.Function):
    """What each process has of one shape, as rows; a loss that all processes add to has gradients of each."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor) -> Tensor:
        rows = mine.new_zeros(distributed.get_world_size(), *mine.shape)
        rows[distributed.get_rank()] = mine
        distributed.all_reduce(rows)  # of one number and zeros: exact, and every backend has it
        return rows

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        grad = grad.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(grad)
        return grad[distributed.get_rank()]


def synchronized_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Statistics]:
    r"""x (N, C, *) normalized over the examples of all processes, which may have unlike numbers of them.

    Process r has n_r values a channel, of mean μ_r and variance σ_r²:

    .. math:: \mu = \sum_r \tfrac{n_r}{n} \mu_r, \qquad
        \sigma^2 = \sum_r \tfrac{n_r}{n} \left(\sigma_r^2 + (\mu_r - \mu)^2\right)

    One message passes between the processes here, and one in the backward pass.
    """
    values = full_precision(x)
    mean, var = moments(values)
    count = torch.full_like(mean, x.numel() // x.shape[1])
    means, variances, counts = _Gathered.apply(torch.stack([mean, var, count])).unbind(1)
    share = counts / counts.sum(0)
    mean = (share * means).sum(0)
    var = (share * (variances + (means - mean).square())).sum(0)
    y = (values - broadcast(mean[None], x)) * broadcast((var + eps).rsqrt()[None], x)
    statistics = Statistics(mean.detach()[None], var.detach()[None], len(x), len(x), counts.sum(0)[0].detach())
    return affine(y, weight, bias).to(x.dtype), statistics
