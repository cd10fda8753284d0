"""Kernels in C for the CPU, where PyTorch has no single pass for what a method computes.

They are compiled when the package is installed, if there is a C compiler. `library()` is None where there was none;
every caller then takes the plain PyTorch way, which is also the one the kernels are tested against.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

VERSION = 1  # of the functions' arguments; `kernels.h` has the same
FOR_PROCESSORS = {"AVX512": "_kernels_avx512", "AVX2": "_kernels_avx2"}  # by PyTorch's word for them, best first


@cache
def library() -> ctypes.CDLL | None:
    """The best compiled kernels that this processor can run, or None."""
    names = [*FOR_PROCESSORS.values(), "_kernels"]
    best = FOR_PROCESSORS.get(torch.backends.cpu.get_cpu_capability(), "_kernels")
    for name in names[names.index(best) :]:
        for path in Path(__file__).parent.glob(f"{name}.*so"):
            try:
                found = ctypes.CDLL(str(path))  # PyTorch, whose threads they use, is loaded by now
            except OSError:
                continue
            if found.equipoise_version() == VERSION:
                return found
    return None


def suits(*tensors: Tensor | None) -> bool:
    """Whether the kernels can take these: float32 on the CPU, and nobody traces or maps them."""
    return (
        not torch.compiler.is_compiling()  # first: what traces must not see the cache of `library`
        and all(t is None or (t.dtype is torch.float32 and t.is_cpu) for t in tensors)
        and library() is not None
        and not torch._C._are_functorch_transforms_active()
    )
