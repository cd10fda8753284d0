"""Inference with the example's own statistics mixed in: the formula."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import full_precision
from ..kernels.device import is_plain, on_triton
from ..kernels.groups import PerChannel, affine, broadcast, pool_channels


def example_weighted_norm(
    x: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    alpha: float,
    eps: float = 1e-5,
    *,
    groups: int | None = None,
) -> Tensor:
    r"""Inference of a norm in which each example has the share `alpha` in its own statistics: x (N, C, *).

    .. math::
        \mu_i = \alpha E[x_i] + (1 - \alpha) m_x, \qquad
        \sigma_i^2 = \alpha E[x_i^2] + (1 - \alpha) m_{x^2} - \mu_i^2

    The variance is computed in an equal form in which nothing cancels, from the example's variance :math:`v_i` and
    the moving one :math:`v = m_{x^2} - m_x^2`:
    :math:`\sigma_i^2 = \alpha v_i + (1 - \alpha) v + \alpha (1 - \alpha) (E[x_i] - m_x)^2`.

    Args:
        mean, var: the moving averages (C,), as mean and variance.
        alpha: 0 is inference by the moving averages, 1 that of instance norm (or group norm, with `groups`).
        groups: channel groups that share statistics; one for each channel where it is not given.

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """
    per_channel = PerChannel(mean, var, weight, bias)
    if is_plain(x, *per_channel) and x.numel() and not _keeps_graph(x, *per_channel):
        if x.is_cpu:
            from ..kernels.cpu import weighed

            return weighed(x, per_channel, alpha, eps, groups or x.shape[1])
        if on_triton(x, *per_channel) and x.dtype != torch.float64:
            return _on_triton(x, per_channel, alpha, eps, groups)
    values = full_precision(x)
    rows = values.flatten(2) if x.dim() > 2 else values[:, :, None]
    own_mean = rows.mean(2)
    own_var = (rows - own_mean[:, :, None]).square().mean(2)
    mean, var = mean.to(own_mean.dtype), var.to(own_mean.dtype)
    if groups is not None:
        own_mean, own_var = pool_channels(own_mean, own_var, groups)
        mean, var = pool_channels(mean, var, groups)

    gap = own_mean - mean
    mu = mean + alpha * gap
    rstd = (alpha * own_var + (1 - alpha) * var + alpha * (1 - alpha) * gap.square() + eps).rsqrt()

    y = (values - broadcast(mu, x)) * broadcast(rstd, x)
    y = affine(y, weight, bias)
    return y if y.dtype == x.dtype else y.to(x.dtype)  # PyTorch 2.7 exports no ReLU in place behind a cast that is none


def _keeps_graph(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _on_triton(x: Tensor, per_channel: PerChannel, alpha: float, eps: float, groups: int | None) -> Tensor:
    if groups is not None and groups < x.shape[1]:
        from ..kernels.triton_blocks import weighed_groups

        return weighed_groups(x, per_channel, alpha, eps, groups)
    from ..kernels.triton_weighing import example_weighted_triton

    return example_weighted_triton(x, *per_channel, alpha, eps)
