"""AutoAugment on a GPU: one kernel in place of some two hundred, with the same numbers."""

from __future__ import annotations

import ctypes
import warnings
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from ...core.tracing import is_watched
from ...native.cuda import CannotCompile, Program

SOURCE = Path(__file__).with_name("operations.cu")
THREADS = 256  # one for each grey level
MOST_BYTES = 2**14  # of an image, of which the kernel keeps two in shared memory


def suits(images: Tensor, strength: Tensor) -> bool:
    """Whether the kernel may take these: plain uint8 images on the current NVIDIA GPU, small, of 2^k pixels.

    Of these the mean grey level, say, has one value whatever the order of the sum.
    """
    if is_watched() or type(images) is not Tensor or not images.is_cuda or torch.version.cuda is None:
        return False
    n, c, h, w = images.shape
    size_fits = n > 0 and c * h * w <= MOST_BYTES and h * w >= THREADS and (h * w).bit_count() == 1
    types_fit = images.dtype == torch.uint8 and strength.dtype == torch.float32 and images.is_contiguous()
    if not (size_fits and types_fit) or images.device.index != torch.cuda.current_device():
        return False
    return _program((c, h, w), images.device) is not None


def operated_and_moved(
    images: Tensor, operation: Tensor, strength: Tensor, pad: int, corner: Tensor, mirrored: Tensor | None
) -> Tensor:
    """Each image after its two operations (N, 2), shifted and mirrored as `draw_moves` has drawn."""
    program, out = _program(tuple(images.shape[1:]), images.device), torch.empty_like(images)
    assert program is not None, "see `suits`"
    program.launch(
        _name(tuple(images.shape[1:])), (len(images),), THREADS,
        images, operation.contiguous(), strength.contiguous(), corner.contiguous(),
        ctypes.c_void_p() if mirrored is None else mirrored, out, pad, len(images),
    )  # fmt: skip
    return out


def _name(shape: tuple[int, ...]) -> str:
    return f"operate_and_move<{', '.join(map(str, shape))}>"


@cache
def _program(shape: tuple[int, ...], device: torch.device) -> Program | None:
    try:
        return Program(SOURCE, [_name(shape)], device)
    except CannotCompile as error:
        warnings.warn(f"AutoAugment takes its slower way: {error}", stacklevel=2)
        return None
