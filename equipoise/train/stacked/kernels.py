"""The kernels of trunk.cu from Python: their structures, their names, and how their work is cut up."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from .layer import Layer

SOURCE = Path(__file__).with_name("trunk.cu")
UNIT = 64  # pixels whose sums are taken together
STORED_CHANNELS = 4  # of an image
PADDED_CHANNELS = 16  # that a convolution reads of an image


class Source(ctypes.Structure):
    _fields_ = (("x", ctypes.c_void_p), ("y", ctypes.c_void_p), ("factors", ctypes.c_void_p))


class Blocks(ctypes.Structure):
    _fields_ = (("size", ctypes.c_void_p), ("most", ctypes.c_int))


class Target(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p) for name in ("out", "sums", "shift", "behind", "factors", "map", "shortcut")
    )


class Norms(ctypes.Structure):
    _fields_ = (
        ("blocks", Blocks),
        *((name, ctypes.c_void_p) for name in ("channels", "epsilon", "gamma", "beta")),
        ("row", ctypes.c_longlong),
    )


def pointers(structure: type[ctypes.Structure], *tensors: Tensor | None) -> ctypes.Structure:
    return structure(*(None if t is None else t.data_ptr() for t in tensors))


class Warps(NamedTuple):
    """Of a thread block of a convolution: units, warps that share the channels of each, and how many thread blocks a
    processor is to hold."""

    units: int
    share: int
    resident: int = 1


class Parts(NamedTuple):
    """How the gradient of a convolution's weights is cut up: rows of a part; channels of the output in a thread block,
    of the input in a warp; thread blocks, on a processor and in all."""

    rows: int
    co: int
    wide: int
    resident: int
    blocks: int

    def threads(self, layer: Layer) -> int:
        return self.co // 16 * (layer.ci // self.wide) * 3 * 32


# What was fastest on an H200. By channels that are read, side of what is made, stride:
WARPS = {
    (16, 32, 1): Warps(4, 1, 6),
    (32, 32, 1): Warps(4, 1, 6),
    (16, 16, 2): Warps(2, 1),
    (32, 16, 1): Warps(2, 1, 8),
    (64, 16, 1): Warps(4, 1, 3),
    (32, 8, 2): Warps(1, 2),
    (64, 8, 1): Warps(1, 2, 8),
}
PARTS = {  # by channels in, channels out
    (16, 16): Parts(8, 16, 16, 5, 80),
    (16, 32): Parts(8, 32, 16, 3, 64),
    (32, 32): Parts(16, 32, 32, 2, 32),
    (32, 64): Parts(8, 64, 32, 1, 32),
    (64, 64): Parts(8, 32, 64, 2, 16),
}


def forward_kernel(layer: Layer, mode: str) -> tuple[str, Warps]:
    return _convolution(mode, "WITH_MOMENTS", layer.ci, layer.co, layer.side, layer.stride, 1, 0)


def backward_kernel(layer: Layer, store: str, shortcut: int) -> tuple[str, Warps]:
    side = layer.side * layer.stride
    return _convolution("GRADIENT", store, layer.co, layer.ci, side, 1, layer.stride, shortcut)


def _convolution(
    mode: str, store: str, ci: int, co: int, side: int, stride: int, spread: int, shortcut: int
) -> tuple[str, Warps]:
    """The kernel's name, and its warps."""
    warps = WARPS[ci, side, stride]
    shape = f"{ci}, {co}, {side}, {stride}, {spread}, {shortcut}, {', '.join(map(str, warps))}"
    return f"convolution<{mode}, {store}, {shape}>", warps


def weights_kernel(layer: Layer, mode: str) -> str:
    cut = PARTS[layer.ci, layer.co]
    shape = f"{layer.ci}, {cut.co}, {layer.co}, {layer.side}, {layer.stride}"
    return f"weight_gradient<{mode}, {shape}, {cut.rows}, {cut.wide}, {cut.resident}>"


def end_kernel(layer: Layer, shortcut: int) -> str:
    return f"block_end<{layer.co}, {layer.side}, {shortcut}>"
