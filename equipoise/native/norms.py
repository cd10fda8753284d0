"""The kernels of the norms. x (N, C, *) is contiguous, or channels-last with `columns`; all is float32 on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_double, c_int64, c_void_p
from functools import cache

import torch
from torch import Tensor

from . import library

_ARGUMENTS = {
    # n, channels, positions, columns, groups, alpha, eps, threads; x, mean, var, weight, bias, y, work
    "weigh": [c_int64] * 5 + [c_double] * 2 + [c_int64] + [c_void_p] * 7,
    # n, channels, positions, columns, size, blocks, groups, eps, threads;
    # x, weight, bias, y, mean, rstd, batch_mean, batch_var, work
    "block_forward": [c_int64] * 7 + [c_double, c_int64] + [c_void_p] * 9,
    # n, channels, positions, columns, size, blocks, groups, threads;
    # dy, x, weight, mean, rstd, dx, d_weight, d_bias, work
    "block_backward": [c_int64] * 8 + [c_void_p] * 9,
    "moving_variance": [c_int64] + [c_void_p] * 4,  # channels; mean, square, rest, var
    # channels; batch_mean, batch_var; rate, unbiased; mean, square, rest, var
    "update_moving": [c_int64, c_void_p, c_void_p, c_double, c_double] + [c_void_p] * 4,
}


def weigh(
    x: Tensor,
    columns: bool,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    alpha: float,
    eps: float,
    groups: int,
) -> Tensor:
    """Inference with the share `alpha` of each example in its statistics; `mean` and `var` (C,) are the moving ones."""
    n, channels, positions = _sizes(x)
    y, work = torch.empty_like(x), torch.empty(2 * (n + 1) * channels)
    of_channels = _packed(mean, var, weight, bias)
    numbers = n, channels, positions, columns, groups, alpha, eps, torch.get_num_threads()
    _kernel("weigh")(*numbers, *_pointers(x, *of_channels, y, work))
    return y


def block_forward(
    x: Tensor,
    columns: bool,
    weight: Tensor | None,
    bias: Tensor | None,
    size: int,
    blocks: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """y; mean and 1 / deviation (2, K, C) of the blocks; mean and biased variance (1, C) of the batch.

    There are K `blocks` of `size` consecutive examples, the last with all that is left.
    """
    n, channels, positions = _sizes(x)
    y, of_blocks, work = torch.empty_like(x), torch.empty(2, blocks, channels), torch.empty(2 * (n + blocks) * channels)
    mean, var = torch.empty(1, channels), torch.empty(1, channels)
    weight, bias = _packed(weight, bias)
    numbers = n, channels, positions, columns, size, blocks, groups, eps, torch.get_num_threads()
    _kernel("block_forward")(*numbers, *_pointers(x, weight, bias, y), *_halves(of_blocks), *_pointers(mean, var, work))
    return y, of_blocks, mean, var


def block_backward(
    grad: Tensor, x: Tensor, columns: bool, weight: Tensor | None, of_blocks: Tensor, size: int, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, γ and β. `grad` lies in memory as x does."""
    n, channels, positions = _sizes(x)
    blocks = of_blocks.shape[1]
    dx, work = torch.empty_like(x), torch.empty((2 * n + 3 * blocks) * channels)
    d_weight, d_bias = torch.empty(channels), torch.empty(channels)
    [weight] = _packed(weight)
    numbers = n, channels, positions, columns, size, blocks, groups, torch.get_num_threads()
    pointers = *_pointers(grad, x, weight), *_halves(of_blocks), *_pointers(dx, d_weight, d_bias, work)
    _kernel("block_backward")(*numbers, *pointers)
    return dx, d_weight, d_bias


def moving_variance(mean: Tensor, square: Tensor, rest: Tensor) -> Tensor:
    """The variance (C,) that the moving averages stand for."""
    var = torch.empty_like(mean)
    _kernel("moving_variance")(len(mean), *_pointers(mean, square, rest, var))
    return var


def update_moving(
    mean: Tensor,
    square: Tensor,
    rest: Tensor,
    batch_mean: Tensor,
    batch_var: Tensor,
    rate: float,
    var: Tensor | None,
    unbiased: float,
) -> None:
    """One step of the moving averages, in place; `var` moves towards `unbiased` times the variance of the batch."""
    state = [t for t in (mean, square, rest, var) if t is not None]
    _kernel("update_moving")(
        len(mean), *_pointers(batch_mean, batch_var), rate, unbiased, *_pointers(mean, square, rest, var)
    )
    torch.autograd.graph.increment_version(state)  # what autograd has kept of them for a backward pass is gone


def _sizes(x: Tensor) -> tuple[int, int, int]:
    """Examples, channels, positions."""
    n, channels = x.shape[:2]
    return n, channels, x.numel() // (n * channels)


def _pointers(*tensors: Tensor | None) -> list[int | None]:
    return [None if t is None else t.data_ptr() for t in tensors]


def _packed(*of_channels: Tensor | None) -> list[Tensor | None]:
    """Numbers of channels without gaps between them, which they have where a caller took them from a larger tensor."""
    return [None if t is None else t.contiguous() for t in of_channels]


def _halves(pair: Tensor) -> tuple[int, int]:
    """Where the two of (2, …) begin."""
    start = pair.data_ptr()
    return start, start + pair.numel() // 2 * pair.element_size()


@cache
def _kernel(name: str) -> Callable[..., None]:
    kernel = getattr(library(), f"equipoise_{name}")
    kernel.argtypes, kernel.restype = _ARGUMENTS[name], None
    return kernel
