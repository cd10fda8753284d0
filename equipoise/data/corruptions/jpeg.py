"""Compression as JPEG, in batches."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ._images import constants, values

QUALITY = (80, 65, 58, 50, 40)

# annex K of the standard: how coarsely each frequency is kept, of brightness and of colour, at quality 50
LUMINANCE = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
CHROMINANCE = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)
# brightness, blueness and redness of red, green and blue
COLOURS = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))


def jpeg_compression(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """Images as they are after compression to JPEG. Nothing is random.

    Colours are kept at half the resolution both ways (4:2:0), as Pillow's default has it, and enlarged smoothly.
    Differs from libjpeg in that cosines are not whole numbers; see `compressed`.
    """
    return compressed(images, constants(QUALITY, severity))


def compressed(images: Tensor, quality: int) -> Tensor:
    """uint8 images (N, 1 or 3, h, w) after compression with a quality from 1 to 100.

    What lies half-way is rounded as libjpeg does it. What differs is a frequency, now and then, so near to half-way
    that its whole-number cosines take it to the other side: by 0.1 to 0.5 levels of 255 in the mean over pixels of
    photographs, where compression itself changes them by 2 to 6.
    """
    x = (255 * values(images)).double()
    if x.shape[1] == 1:
        return coded(x, LUMINANCE, quality).to(torch.uint8)
    h, w = x.shape[2:]
    to_colours = torch.tensor(COLOURS, dtype=x.dtype, device=x.device)
    shift = x.new_tensor([0, 128, 128])[:, None, None]
    brightness, colour = half_up(mixed(x, to_colours) + shift).split((1, 2), dim=1)
    small = coded(reduced(colour), CHROMINANCE, quality)[..., : (h + 1) // 2, : (w + 1) // 2]
    colour = enlarged(small)[..., :h, :w]
    decoded = torch.cat((coded(brightness, LUMINANCE, quality), colour), dim=1) - shift
    return half_up(mixed(decoded, torch.linalg.inv(to_colours))).clamp(0, 255).to(torch.uint8)


def coded(x: Tensor, table: tuple[tuple[int, ...], ...], quality: int) -> Tensor:
    """Channels from 0 to 255 after their frequencies in blocks of 8 × 8 are rounded to multiples of the table's."""
    h, w = x.shape[2:]
    blocks = (padded(x, 8, 8) - 128).unflatten(3, (-1, 8)).unflatten(2, (-1, 8)).transpose(3, 4)
    waves, step = cosines().to(x), scaled(table, quality).to(x)
    level = waves @ blocks @ waves.T / step
    level = level.sign() * half_up(level.abs() + 1e-9)  # away from 0, also where rounding is a little below half-way
    smooth = waves.T @ (level * step) @ waves
    whole = smooth.transpose(3, 4).flatten(4, 5).flatten(2, 3)
    return half_up(whole[..., :h, :w] + 128).clamp(0, 255)


def reduced(x: Tensor) -> Tensor:
    """Half the size, each pixel the mean of four; a mean half-way is rounded down in even columns, up in odd ones."""
    small = F.avg_pool2d(padded(x, 2, 16), 2)  # libjpeg fills up blocks sidewards before, downwards after
    odd = torch.arange(small.shape[3], device=x.device) % 2
    return (small + (1 + odd) / 4).floor()


def enlarged(x: Tensor) -> Tensor:
    """Twice the size, read linearly between pixels; of sixteenths, half-way is rounded up in even columns alone."""
    large = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
    odd = torch.arange(large.shape[3], device=x.device) % 2
    return (large + (8 - odd) / 16).floor()


def half_up(x: Tensor) -> Tensor:
    return (x + 0.5).floor()


def scaled(table: tuple[tuple[int, ...], ...], quality: int) -> Tensor:
    """The table for a quality from 1 to 100, as libjpeg scales it."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    return ((torch.tensor(table) * percent + 50) // 100).clamp(1, 255)


def cosines() -> Tensor:
    """The orthogonal cosine transform of 8 values: frequencies (8, 8) by places."""
    frequency, place = torch.arange(8).double()[:, None], torch.arange(8).double()
    waves = torch.cos(math.pi / 8 * frequency * (place + 0.5)) / 2
    waves[0] /= math.sqrt(2)
    return waves


def padded(x: Tensor, rows: int, columns: int) -> Tensor:
    """The last row and column repeated until the sides are multiples of these."""
    h, w = x.shape[2:]
    return F.pad(x, (0, -w % columns, 0, -h % rows), mode="replicate")


def mixed(x: Tensor, matrix: Tensor) -> Tensor:
    """Channels mixed by a matrix (3, 3)."""
    return torch.einsum("dc,nchw->ndhw", matrix.to(x), x)
