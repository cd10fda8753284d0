"""Which kernels serve a tensor."""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor, nn

from ...core.tracing import is_watched

_PLAIN = (Tensor, nn.Parameter)
_HAS_TRITON = importlib.util.find_spec("triton") is not None


def on_triton(*tensors: Tensor | None) -> bool:
    """Whether these lie on an NVIDIA or AMD GPU with Triton installed, as the numbers that kernels read."""
    return _HAS_TRITON and all(t is None or t.is_cuda for t in tensors) and is_plain(*tensors)


def is_mapped() -> bool:
    """Whether a transformation of `torch.func` is at work, in which tensors do not tell how they lie in memory."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def is_plain(*tensors: Tensor | None) -> bool:
    """Whether these are dense tensors, and nobody traces, maps or intercepts what is done with them.

    Everything else takes the formula in PyTorch's operations, which work on whatever comes.
    """
    if is_watched():
        return False
    for t in tensors:
        if t is not None and (type(t) not in _PLAIN or t.layout is not torch.strided or t.is_neg()):
            return False
    return True
