"""The kernel that scales a photograph down: Pillow's bilinear scaling, to the bit, in a quarter of its time."""

from __future__ import annotations

import sys
from ctypes import POINTER, Structure, c_char_p, c_int64, c_void_p, cast, py_object, pythonapi
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import library

_pointer_of = pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c_void_p, [py_object, c_char_p]


class _ArrowArray(Structure):
    """What Arrow's C data interface hands over: https://arrow.apache.org/docs/format/CDataInterface.html."""


_ArrowArray._fields_ = [
    *((name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_ArrowArray))),
    *((name, c_void_p) for name in ("dictionary", "release", "private_data")),
]


def scaled_down(image: Any, width: int, height: int) -> NDArray[np.uint8] | None:
    """Pillow's `image`, of mode RGB, at another size (height, width, 3); None where Pillow must do it.

    That is without the kernel; before Pillow 11.2, which does not show its memory; of images that lie there in several
    pieces, from 4 million pixels on; and of those more than twice as high as wide, which Pillow 13 scales along columns
    first and earlier ones do not.
    """
    if _kernel() is None or image.mode != "RGB" or image.height > 2 * image.width:
        return None
    if not hasattr(image, "__arrow_c_array__"):
        return None
    try:
        schema_and_array = image.__arrow_c_array__()  # the pixels stay where they are as long as this is held
    except ValueError:
        return None
    array = cast(_pointer_of(schema_and_array[1], b"arrow_array"), POINTER(_ArrowArray)).contents
    flat = array.children[0].contents if array.n_children == 1 else array
    if flat.length != 4 * image.width * image.height or flat.offset:
        return None
    out = np.empty((height, width, 3), np.uint8)
    if _kernel()(flat.buffers[1], image.height, image.width, height, width, out.ctypes.data):
        raise MemoryError("there is not enough memory to scale an image")
    return out


@cache
def _kernel() -> Any:
    kernel = getattr(library(), "equipoise_scale_down", None)  # a library compiled by an older version lacks it
    if kernel is None or sys.byteorder != "little":
        return None
    kernel.argtypes = [c_void_p, *[c_int64] * 4, c_void_p]
    return kernel
