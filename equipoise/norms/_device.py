"""Which kernels serve a tensor."""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor

_HAS_TRITON = importlib.util.find_spec("triton") is not None


def on_triton(x: Tensor) -> bool:
    """Whether `x` lies on an NVIDIA or AMD GPU with Triton installed, and nobody is tracing the computation."""
    return _HAS_TRITON and x.is_cuda and not torch.compiler.is_compiling()
