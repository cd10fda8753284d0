"""The moving averages of x and x², and the variance they stand for.

The state of a norm is `running_mean` (m), `running_square` (s) and `square_rest` (r), one number a channel each.
In float32 the difference s - m² is lost where |m| is much larger than the standard deviation, so r keeps what the
rounding of s and m took from it: the variance is s - m² + r. r is 0 to rounding everywhere else.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import native
from ..native import norms as kernels
from .kernels.device import on_triton
from .kernels.groups import Statistics


def moving_variance(mean: Tensor, square: Tensor, rest: Tensor) -> Tensor:
    """The variance s - m² + r (C,), in the type of `mean`."""
    if on_triton(mean, square, rest):
        from .kernels.triton_moving import moving_variance_triton

        return moving_variance_triton(mean, square, rest)
    if _suits(mean, square, rest):
        return kernels.moving_variance(mean, square, rest)
    m = _precise(mean)
    return _precise(square).addcmul(m, m, value=-1).add(rest).clamp(min=0).to(mean.dtype)


def set_moving(mean: Tensor, square: Tensor, rest: Tensor, new_mean: Tensor, new_var: Tensor) -> None:
    """Let the state stand for `new_mean` and `new_var`, in place."""
    m, var = _precise(new_mean), _precise(new_var)
    mean.copy_(m)
    square.copy_(var.addcmul(m, m))
    m = _precise(mean)  # as it was rounded
    rest.copy_(var.sub(square).addcmul(m, m))


def update_moving(
    mean: Tensor,
    square: Tensor,
    rest: Tensor,
    batch: Statistics,
    rate: float,
    var: Tensor | None = None,
    unbiased: float | Tensor = 1.0,
) -> None:
    r"""One step of both averages, m ← m + rate (E[x] - m) and s ← s + rate (E[x²] - s), in place.

    The variance s - m² moves by its own exact rule, which has no cancellation:
    V ← (1 - rate) V + rate var + rate (1 - rate) (E[x] - m)². `var`, a moving variance as PyTorch's batch norm has it,
    moves towards the unbiased one of the batch, which is `unbiased` times the other.
    """
    if len(batch.mean) == 1 and _suits(mean, square, rest, var, batch.mean, batch.var):
        kernels.update_moving(mean, square, rest, batch.mean, batch.var, rate, var, float(unbiased))
        return
    on_gpu = batch.mean.dtype == torch.float32 and on_triton(mean, square, rest, var, batch.mean, batch.var)
    with torch.no_grad():
        if isinstance(unbiased, Tensor) or not on_gpu:
            if var is not None:
                var.copy_(var.lerp((batch.merged()[1] * unbiased).to(var.dtype), rate))
            var, unbiased = None, 1.0
        if on_gpu:
            from .kernels.triton_moving import update_moving_triton

            update_moving_triton(mean, square, rest, batch, rate, var, unbiased)
        else:
            _update_moving(mean, square, rest, batch, rate)


def _update_moving(mean: Tensor, square: Tensor, rest: Tensor, batch: Statistics, rate: float) -> None:
    # nothing in place but into the state: `torch.func` has rules for each operation then
    batch_mean, batch_var = batch.merged()
    m = _precise(mean)
    var = torch.addcmul(square, m, m, value=-1).add(rest)
    step = batch_mean - m
    var = var.mul(1 - rate).add(batch_var, alpha=rate).addcmul(step, step, value=rate * (1 - rate))
    set_moving(mean, square, rest, m.add(step, alpha=rate), var)


def _suits(*tensors: Tensor | None) -> bool:
    """Whether the kernels can take these."""
    return native.suits(*tensors) and all(t is None or t.is_contiguous() for t in tensors)


def _precise(x: Tensor) -> Tensor:
    return x.float() if x.device.type == "mps" else x.double()  # that device has no float64
