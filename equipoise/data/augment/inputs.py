"""Images as a network takes them, in training and at test, without chance: size and scale."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core import checks, full_precision
from ...native import inputs as kernels
from ._base import LARGEST_IMAGE, as_pixels, check_images


def normalize(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """uint8 images (N, c, h, w) -> float32, each channel minus its `mean`, over its `std`, on the scale 0 to 1."""
    if images.dtype != torch.uint8:
        raise ValueError(f"normalize expects uint8 images with values 0 to 255, got {images.dtype}")
    if kernels.suits(images, mean, std):
        return kernels.normalized(images, mean, std)
    if torch.compiler.is_compiling():  # PyTorch 2.6 exports no in-place step on a cast
        return (images.float() / 255 - mean[:, None, None]) / std[:, None, None]
    # in place: on a CPU, fresh memory for each of the three steps costs more than the steps
    return images.float().div_(255).sub_(mean[:, None, None]).div_(std[:, None, None])


def resize(images: Tensor, size: int | tuple[int, int]) -> Tensor:
    """Scale images (N, c, h, w) to `size` = (height, width), or so that the shorter side is `size`.

    Bilinear; when shrinking, each pixel is an average over all that it covers.

    >>> resize(torch.zeros(8, 3, 300, 400, dtype=torch.uint8), 256).shape
    torch.Size([8, 3, 256, 341])
    """
    check_images("resize", images)
    h, w = images.shape[2:]
    if isinstance(size, int):
        short = checks.whole("size", size, 1, LARGEST_IMAGE)
        size = (short, short * w // h) if h <= w else (short * h // w, short)
    height, width = check_size(size)
    if (height, width) == (h, w):
        return images
    values = full_precision(images) if images.is_floating_point() else images.float()
    values = F.interpolate(values, (height, width), mode="bilinear", antialias=True)
    return as_pixels(values, images.dtype)


def centre_crop(images: Tensor, size: int | tuple[int, int]) -> Tensor:
    """The middle of images (N, c, h, w), of `size` = (height, width), or a square with that side.

    Where the rest is odd, the part cut off above and on the left is the smaller one.

    >>> centre_crop(torch.arange(20).view(1, 1, 4, 5), 2)
    tensor([[[[ 6,  7], [11, 12]]]])
    """
    check_images("centre_crop", images)
    h, w = images.shape[2:]
    height, width = check_size((size, size) if isinstance(size, int) else size)
    if height > h or width > w:
        raise ValueError(f"centre_crop cannot cut {height} × {width} out of {h} × {w}; resize the images first")
    top, left = (h - height) // 2, (w - width) // 2
    return images[:, :, top : top + height, left : left + width]


def check_size(size: tuple[int, int]) -> tuple[int, int]:
    """(height, width), each a whole number of at least one pixel."""
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise ValueError(f"size must be a whole number or (height, width), not {size!r}")
    return checks.whole("size", size[0], 1, LARGEST_IMAGE), checks.whole("size", size[1], 1, LARGEST_IMAGE)
