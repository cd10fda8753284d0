"""Where the fused Triton kernels can run."""

from __future__ import annotations

import functools
import importlib.util

import torch
from torch import Tensor


def on_triton(x: Tensor) -> bool:
    """Whether `x` lies on an NVIDIA or AMD GPU with Triton installed, and nobody is tracing the computation."""
    return x.is_cuda and _triton_is_installed() and not torch.compiler.is_compiling()


@functools.cache
def _triton_is_installed() -> bool:
    return importlib.util.find_spec("triton") is not None
