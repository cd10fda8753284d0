"""A square hole in each image."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import checks
from ._base import LARGEST_IMAGE, check_images
from ._operations import FILL


def cutout(images: Tensor, side: int = 16, *, generator: torch.Generator | None = None) -> Tensor:
    """Fill a square around a random pixel of each image (N, c, h, w) with grey; the border cuts it off.

    DeVries and Taylor (arXiv:1708.04552), whose squares have the mean colour of the data and on CIFAR 16 pixels a side.
    """
    check_images("cutout", images)
    checks.whole("side", side, 0, LARGEST_IMAGE)
    n, _, *size = images.shape
    rows, columns = (_inside(length, side, n, images.device, generator) for length in size)
    return images.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], FILL)


def _inside(length: int, side: int, n: int, device: torch.device, generator: torch.Generator | None) -> Tensor:
    """(n, length), True where a line of pixels crosses the square."""
    centre = torch.randint(length, (n, 1), device=device, generator=generator)
    from_first = torch.arange(length, device=device) - (centre - side // 2)
    return (from_first >= 0) & (from_first < side)
