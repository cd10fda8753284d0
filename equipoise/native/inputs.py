"""The kernels that turn pixels into a network's input; `equipoise.data.augment.normalize` says what they compute."""

from __future__ import annotations

from ctypes import c_int64, c_void_p
from functools import cache
from typing import Any

import torch
from torch import Tensor

from . import is_plain, library
from . import suits as floats_suit

MOST_CHANNELS = 4  # beside each other; inputs.c has the same


def suits(images: Tensor, mean: Tensor, std: Tensor) -> bool:
    """Whether the kernels are there and may take these images (N, c, h, w), which are uint8."""
    if images.dim() != 4 or not floats_suit(mean, std) or not is_plain(images) or _kernels() is None:
        return False
    channels = images.shape[1]
    if mean.shape != (channels,) or std.shape != (channels,) or images.numel() == 0:
        return False
    return images.is_contiguous() or (_are_interleaved(images) and channels <= MOST_CHANNELS)


def normalized(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """float32 (N, c, h, w), in the images' layout."""
    n, channels, height, width = images.shape
    kernels = _kernels()
    assert kernels is not None, "see `suits`"
    planes, interleaved = kernels
    out = torch.empty_like(images, dtype=torch.float32)
    held = [images, mean.contiguous(), std.contiguous(), out]
    pointers = [tensor.data_ptr() for tensor in held]
    if images.is_contiguous():
        planes(n * channels, channels, height * width, *pointers)
    else:
        interleaved(n * height * width, channels, *pointers)
    return out


def _are_interleaved(images: Tensor) -> bool:
    return images.is_contiguous(memory_format=torch.channels_last)


@cache
def _kernels() -> tuple[Any, Any] | None:
    names = ("equipoise_normalize_planes", "equipoise_normalize_interleaved")
    planes, interleaved = (getattr(library(), name, None) for name in names)
    if planes is None or interleaved is None:
        return None  # a library compiled by an older version lacks them
    planes.argtypes = [c_int64] * 3 + [c_void_p] * 4
    interleaved.argtypes = [c_int64] * 2 + [c_void_p] * 4
    return planes, interleaved
