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
from torch._C import _dispatch_keys
from torch.nn import Parameter

from ..core.tracing import is_watched

VERSION = 3  # of the functions' arguments; `kernels.h` has the same
FOR_PROCESSORS = {"AVX512": "_kernels_avx512", "AVX2": "_kernels_avx2"}  # by PyTorch's word for them, best first
# every call of a loss or a norm asks `suits`: what it needs is looked up once
_CPU, _FLOAT, _LONG, _PLAIN = torch.device("cpu"), torch.float32, torch.int64, frozenset({Tensor, Parameter})


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


def suits(*tensors: Tensor | None, labels: Tensor | None = None) -> bool:
    """Whether the kernels may take these: plain float32 tensors on the CPU, int64 `labels`, and nobody watching.

    Memory is all that a kernel sees. So whatever has none, has it elsewhere or reads it in its own way (fake, meta and
    wrapped tensors, subclasses, a sign that is still to be turned) takes PyTorch's way, and so does all that is traced.
    """
    if is_watched() or library() is None:
        return False
    for tensor in tensors:
        if tensor is not None and (tensor.dtype is not _FLOAT or not is_plain(tensor)):
            return False
    return labels is None or (labels.dtype is _LONG and is_plain(labels))


def is_plain(tensor: Tensor) -> bool:
    """Whether this is a dense tensor on the CPU and nothing more, of whatever type."""
    return type(tensor) in _PLAIN and _dispatch_keys(tensor).raw_repr() in _plain_keys()


@cache
def _plain_keys() -> frozenset[int]:
    """What PyTorch dispatches on for dense tensors on the CPU, made in inference mode or not: no more is plain."""
    with torch.inference_mode(False):
        usual = torch.empty(0, device="cpu")
    with torch.inference_mode():
        without_autograd = torch.empty(0, device="cpu")
    return frozenset(_dispatch_keys(t).raw_repr() for t in (usual, without_autograd))


def floats(*shape: int) -> Tensor:
    """Memory for a kernel to write into, whatever the default type and device are."""
    return torch.empty(shape, dtype=torch.float32, device=_CPU)
