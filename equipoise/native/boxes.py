"""The kernel that cuts boxes out of images of any shape; `equipoise.data.boxes` says what it computes."""

from __future__ import annotations

from ctypes import c_int64, c_void_p
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..core.tracing import is_watched
from . import is_plain, library

Taps = tuple[Tensor, Tensor, Tensor]  # pixels (n, m, K) as int32, weights as int16, how many are used (n,) as int32


def suits(arena: Tensor) -> bool:
    """Whether the kernel is there and may take images from here."""
    return not is_watched() and is_plain(arena) and _kernel() is not None


def read_boxes(arena: Tensor, first: Tensor, widths: Tensor, rows: Taps, columns: Taps) -> Tensor:
    """Pixels (n, H, W, 3) as uint8."""
    (n, height, most_rows), (_, width, most_columns) = rows[0].shape, columns[0].shape
    out = torch.empty((n, height, width, 3), dtype=torch.uint8)
    held = [tensor.contiguous() for tensor in (arena, first, widths, *rows, *columns)]
    pointers = [tensor.data_ptr() for tensor in (*held, out)]
    if _kernel()(n, height, width, most_rows, most_columns, *pointers):
        raise MemoryError("there is not enough memory to cut boxes out of images")
    return out


@cache
def _kernel() -> Any:
    kernel = getattr(library(), "equipoise_read_boxes", None)  # a library compiled by an older version lacks it
    if kernel is not None:
        kernel.argtypes = [c_int64] * 5 + [c_void_p] * 10
    return kernel
