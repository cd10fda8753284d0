"""Whether somebody looks at PyTorch's operations, so that they must be PyTorch's own."""

from __future__ import annotations

import torch
from torch._C import (
    _are_functorch_transforms_active,
    _is_tracing,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
)
from torch.autograd import forward_ad
from torch.compiler import is_compiling
from torch.utils._device import DeviceContext


def is_watched() -> bool:
    """Whether operations are traced, mapped, replaced or counted right now: tensors need not be what they seem then.

    By `torch.compile`, `torch.export`, `torch.jit.trace`, `make_fx`, fake tensors, the transformations of `torch.func`,
    forward-mode differentiation, or any other mode. What goes past PyTorch, or keeps a tensor for the next call, asks
    this first.
    """
    return (
        is_compiling()  # first: a compiler knows the answer, and looks no further
        or _len_torch_dispatch_stack() > 0
        or _are_functorch_transforms_active()
        or _is_tracing()
        or forward_ad._current_level >= 0
        or (_len_torch_function_stack() > 0 and _in_function_mode())
    )


def _in_function_mode() -> bool:
    """In one other than that of a default device, which only says where new tensors are made."""
    stack = (torch._C._get_function_stack_at(i) for i in range(_len_torch_function_stack()))
    return any(not isinstance(mode, DeviceContext) for mode in stack)
