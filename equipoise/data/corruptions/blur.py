"""Blur: out of focus, through glass, by motion and by zooming."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ._images import blurred, constants, convolution, fold, gaussian, moved, pixels, stretch, uniform, values, zoomed

DEFOCUS = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))  # radius of the disc, sigma of its soft edge
GLASS = ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))  # sigma, reach, rounds
MOTION = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))  # radius, sigma
# numbers of zooms 1.00, 1.01, …: what NumPy's arange(1, 1.06, 0.01) to arange(1, 1.26, 0.01) have
ZOOMS = (7, 12, 16, 21, 26)


def defocus_blur(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """A lens out of focus: each point becomes a disc with a soft edge. Nothing is random."""
    x = values(images)
    n, c, h, w = x.shape
    radius, soft = (length * stretch(x) for length in constants(DEFOCUS, severity))
    kernel = disc(radius, soft, reach=math.ceil(stretch(x))).to(x)
    reach = len(kernel) // 2
    rows, columns = (
        fold(torch.arange(-reach, size + reach, device=x.device), size, border="mirror") for size in (h, w)
    )
    wide = x[:, :, rows][..., columns].view(n * c, 1, h + 2 * reach, w + 2 * reach)
    return pixels(F.conv2d(wide, kernel[None, None]).view_as(x))


def disc(radius: float, soft: float, reach: int) -> Tensor:
    """The kernel of a disc, blurred by a Gaussian of sigma `soft` that ends after `reach` pixels."""
    size = math.floor(radius) + reach
    place = torch.arange(-size, size + 1).double()
    sharp = (place**2 + place[:, None] ** 2 <= radius**2).double()
    edge = convolution(len(place), gaussian(soft, reach), border="edge")  # where the disc is 0
    return edge @ (sharp / sharp.sum()) @ edge.T


def glass_blur(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """Frosted glass: pixels are taken from a random place nearby, with a Gaussian blur before and after.

    The authors' code says to exchange two pixels; run on arrays it copies one onto the other, and that is what their
    images show and what is done here. A pixel is copied from itself, from above, from the left or from both; the upper
    and left borders stay.
    """
    x = values(images)
    sigma, reach, rounds = constants(GLASS, severity)
    sigma, reach = sigma * stretch(x), round(reach * stretch(x))
    x = blurred(x, sigma)
    for _ in range(rounds):
        x = scattered(x, reach, generator)
    return pixels(blurred(x, sigma))


def scattered(x: Tensor, reach: int, generator: torch.Generator) -> Tensor:
    """Each pixel taken from a place −reach to reach − 1 away, downwards and to the right; two borders stay."""
    n, c, h, w = x.shape
    down, right = uniform(-reach, reach, (2, n, h, w), generator, x.device).floor().long()
    row, column = torch.arange(h, device=x.device)[:, None], torch.arange(w, device=x.device)
    inner = (row > reach) & (column > reach)
    rows = torch.where(inner, row + down, row).clamp(0, h - 1)
    columns = torch.where(inner, column + right, column).clamp(0, w - 1)
    source = (rows * w + columns).view(n, 1, h * w).expand(n, c, h * w)
    return x.flatten(2).gather(2, source).view_as(x)


def motion_blur(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """A camera that moves: each image is smeared in its own direction, −45° to 45° from the horizontal."""
    x = values(images)
    radius, sigma = (length * stretch(x) for length in constants(MOTION, severity))
    return pixels(moved(x, radius, sigma, uniform(-45, 45, (len(x),), generator, x.device)))


def zoom_blur(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """A lens that zooms while it is open: the mean of the image and its magnifications. Nothing is random."""
    x = values(images)
    count = constants(ZOOMS, severity)
    total = sum((zoomed(x, 1 + i / 100) for i in range(count)), start=x)
    return pixels(total / (count + 1))
