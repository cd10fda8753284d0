"""The kernels of the norms. x (N, C, *) is contiguous, or channels-last with `columns`; all is float32 on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_double, c_int64, c_void_p
from functools import cache

import torch
from torch import Tensor

from . import floats, library

_ARGUMENTS = {
    # n, channels, positions, columns, groups, alpha, eps, threads; x, mean, var, weight, bias, y, work
    "weigh": [c_int64] * 5 + [c_double] * 2 + [c_int64] + [c_void_p] * 7,
    # n, channels, positions, columns, threads; x, mean, var, work
    "batch_moments": [c_int64] * 5 + [c_void_p] * 4,
    # n, channels, positions, columns, size, blocks, groups, eps, threads, relu;
    # x, shortcut, weight, bias, y, mean, rstd, batch_mean, batch_var, work
    "block_forward": [c_int64] * 7 + [c_double] + [c_int64] * 2 + [c_void_p] * 10,
    # n, channels, positions, columns, size, blocks, groups, threads, relu;
    # dy, x, y, weight, bias, mean, rstd, dx, behind, d_weight, d_bias, work
    "block_backward": [c_int64] * 9 + [c_void_p] * 12,
    "moving_variance": [c_int64] + [c_void_p] * 4,  # channels; mean, square, rest, var
    # channels; batch_mean, batch_var; rate, unbiased; mean, square, rest, var
    "update_moving": [c_int64, c_void_p, c_void_p, c_double, c_double] + [c_void_p] * 4,
}


def weigh(
    x: Tensor, columns: bool, per_channel: Sequence[Tensor | None], alpha: float, eps: float, groups: int
) -> Tensor:
    """Inference with the share `alpha` of each example in its statistics.

    `per_channel` has the moving mean and variance, γ and β (C,).
    """
    n, channels, positions = _sizes(x, groups)
    y, work = torch.empty_like(x), floats(2 * (n + 1) * channels)
    numbers = n, channels, positions, columns, groups, alpha, eps, torch.get_num_threads()
    _kernel("weigh")(*numbers, *_pointers(x, *_packed(channels, *per_channel), y, work))
    return y


def batch_moments(x: Tensor, columns: bool) -> tuple[Tensor, Tensor]:
    """Mean and biased variance (C,) of the batch."""
    n, channels, positions = _sizes(x)
    mean, var, work = floats(channels), floats(channels), floats(2 * n * channels)
    numbers = n, channels, positions, columns, torch.get_num_threads()
    _kernel("batch_moments")(*numbers, *_pointers(x, mean, var, work))
    return mean, var


def block_forward(
    x: Tensor,
    shortcut: Tensor | None,
    relu: bool,
    columns: bool,
    weight: Tensor | None,
    bias: Tensor | None,
    size: int,
    blocks: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """y; mean and 1 / deviation (2, K, C) of the blocks; mean and biased variance (1, C) of the batch.

    There are K `blocks` of `size` consecutive examples, the last with all that is left. With `relu`, y is
    relu(norm(x) + shortcut); a shortcut lies in memory as x does.
    """
    n, channels, positions = _sizes(x, groups)
    y, of_blocks, work = torch.empty_like(x), floats(2, blocks, channels), floats(2 * (n + blocks) * channels)
    mean, var = floats(1, channels), floats(1, channels)
    weight, bias = _packed(channels, weight, bias)
    numbers = n, channels, positions, columns, size, blocks, groups, eps, torch.get_num_threads(), relu
    pointers = *_pointers(x, shortcut, weight, bias, y), *_halves(of_blocks), *_pointers(mean, var, work)
    _kernel("block_forward")(*numbers, *pointers)
    return y, of_blocks, mean, var


def block_backward(
    grad: Tensor,
    x: Tensor,
    y: Tensor | None,
    relu: bool,
    columns: bool,
    weight: Tensor | None,
    bias: Tensor | None,
    of_blocks: Tensor,
    size: int,
    groups: int,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Gradients of x, of the shortcut, γ and β. `grad` lies in memory as x does; y is given if there was a shortcut."""
    n, channels, positions = _sizes(x, groups)
    blocks = of_blocks.shape[1]
    dx, work = torch.empty_like(x), floats((2 * n + 5 * blocks) * channels)
    behind = None if y is None else torch.empty_like(x)
    d_weight, d_bias = floats(channels), floats(channels)
    weight, bias = _packed(channels, weight, bias)
    numbers = n, channels, positions, columns, size, blocks, groups, torch.get_num_threads(), relu
    given = *_pointers(grad, x, y, weight, bias), *_halves(of_blocks)
    _kernel("block_backward")(*numbers, *given, *_pointers(dx, behind, d_weight, d_bias, work))
    return dx, behind, d_weight, d_bias


def moving_variance(mean: Tensor, square: Tensor, rest: Tensor) -> Tensor:
    """The variance (C,) that the moving averages stand for."""
    channels, averages = len(mean), (mean, square, rest)
    _check_side_by_side(channels, *averages)
    var = floats(channels)
    _kernel("moving_variance")(channels, *_pointers(*averages, var))
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
    channels, state = len(mean), [t for t in (mean, square, rest, var) if t is not None]
    _check_side_by_side(channels, batch_mean, batch_var, *state)
    _kernel("update_moving")(
        channels, *_pointers(batch_mean, batch_var), rate, unbiased, *_pointers(mean, square, rest, var)
    )
    # what autograd has kept of them for a backward pass is gone; in inference mode it keeps nothing and counts nothing
    torch.autograd.graph.increment_version([t for t in state if not t.is_inference()])


def _sizes(x: Tensor, groups: int = 1) -> tuple[int, int, int]:
    """Examples, channels, positions."""
    n, channels = x.shape[:2]
    if channels % groups:
        raise ValueError(f"{channels} channels cannot be split into {groups} equal groups")
    return n, channels, x.numel() // (n * channels)


def _pointers(*tensors: Tensor | None) -> list[int | None]:
    return [None if t is None else t.data_ptr() for t in tensors]


def _packed(channels: int, *of_channels: Tensor | None) -> list[Tensor | None]:
    """Numbers of channels without gaps between them, which they have where a caller took them from a larger tensor."""
    return [None if t is None else _checked(t, channels).contiguous() for t in of_channels]


def _checked(values: Tensor, channels: int) -> Tensor:
    if values.shape != (channels,):  # the kernel would read beyond it
        raise ValueError(f"there must be one number for each of {channels} channels, not {tuple(values.shape)}")
    return values


def _check_side_by_side(channels: int, *averages: Tensor) -> None:
    for values in averages:
        if values.numel() != channels or not values.is_contiguous():
            raise ValueError(f"there must be {channels} numbers side by side, not a tensor {tuple(values.shape)}")


def _halves(pair: Tensor) -> tuple[int, int]:
    """Where the two of (2, …) begin."""
    start = pair.data_ptr()
    return start, start + pair.numel() // 2 * pair.element_size()


@cache
def _kernel(name: str) -> Callable[..., None]:
    kernel = getattr(library(), f"equipoise_{name}")
    kernel.argtypes, kernel.restype = _ARGUMENTS[name], None
    return kernel
