"""Which kernels serve a tensor."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import torch
from torch import Tensor


def on_triton(x: Tensor) -> bool:
    """Whether `x` lies on an NVIDIA or AMD GPU with Triton installed, and nobody is tracing the computation."""
    return x.is_cuda and _triton_is_installed() and not torch.compiler.is_compiling()


def kernels_for(x: Tensor) -> Any:
    """The module with the `_blockwise.Kernels` for `x`, or None where only the plain formula will do."""
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        from . import _cpu

        return _cpu
    return None


@functools.cache
def _triton_is_installed() -> bool:
    return importlib.util.find_spec("triton") is not None
