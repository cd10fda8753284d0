"""What the corruptions share: values, random numbers, and operations on rows and columns as matrices.

A separable operation on an image (h, w) is R x Cᵀ with a matrix for the rows and one for the columns. Blurring, zooming
and resizing are such matrices, their borders included, so that images of every size go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...core import checks

SIDE = 32  # of the images that the published constants are for


def constants(published: Sequence[Any], severity: int) -> Any:
    """The published constants of a severity from 1 to 5."""
    if checks.whole("severity", severity, 1) > len(published):
        raise ValueError(f"severity must be from 1 to {len(published)}, not {severity}")
    return published[severity - 1]


def values(images: Tensor) -> Tensor:
    """uint8 images (N, 1 or 3, h, w) as numbers from 0 to 1."""
    if images.dim() != 4 or images.dtype != torch.uint8 or images.shape[1] not in (1, 3) or 0 in images.shape[2:]:
        raise ValueError(
            f"corruptions are for uint8 images of shape (N, 1 or 3, h, w), not {images.dtype} {tuple(images.shape)}"
        )
    return images.float() / 255


def pixels(x: Tensor) -> Tensor:
    """Values as uint8, rounded; below 0 is black, above 1 white."""
    return (x * 255).round_().clamp_(0, 255).to(torch.uint8)


def stretch(x: Tensor) -> float:
    """How much longer lengths in pixels are than in images of 32 × 32; never shorter: see the package."""
    return max(1.0, min(x.shape[2:]) / SIDE)


def uniform(low: float, high: float, shape: Sequence[int], generator: torch.Generator, device: torch.device) -> Tensor:
    """Random numbers in [low, high), drawn where the generator is."""
    drawn = torch.rand(tuple(shape), generator=generator, device=generator.device).to(device)
    return low + (high - low) * drawn


def normal(shape: Sequence[int], generator: torch.Generator, device: torch.device) -> Tensor:
    return torch.randn(tuple(shape), generator=generator, device=generator.device).to(device)


def fold(position: Tensor, n: int, border: str) -> Tensor:
    """Positions outside of 0 to n − 1 brought inside.

    "edge" repeats the last pixel (3 | 1 2 3 | 3 3), "mirror" does not (3 2 | 1 2 3 | 2 1), "symmetric" mirrors it too
    (2 1 | 1 2 3 | 3 2).
    """
    if border == "edge":
        return position.clamp(0, n - 1)
    period = max(1, 2 * n - 2) if border == "mirror" else 2 * n
    inside = position.remainder(period)
    return torch.where(inside < n, inside, (period if border == "mirror" else period - 1) - inside)


def gaussian(sigma: float, radius: int) -> Tensor:
    """The weights of a Gaussian at −radius to radius, of sum 1."""
    if not sigma:
        radius, sigma = 0, 1.0
    weights = torch.exp(-(torch.arange(-radius, radius + 1).double() ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def convolution(n: int, kernel: Tensor, border: str) -> Tensor:
    """The matrix (n, n) that convolves n pixels with a symmetric kernel."""
    radius = len(kernel) // 2
    source = fold(torch.arange(n)[:, None] + torch.arange(-radius, radius + 1), n, border)
    return torch.zeros(n, n, dtype=torch.float64).scatter_add_(1, source, kernel.expand(n, -1).contiguous())


def magnification(n: int, factor: float) -> Tensor:
    """The matrix (n, n) that shows the middle of n pixels `factor` times as large, read linearly between pixels."""
    part = math.ceil(n / factor)
    size = round(part * factor)
    place = (torch.arange(n).double() + (size - n) // 2) * (part - 1) / max(1, size - 1) + (n - part) // 2
    low = place.floor().clamp(0, n - 1)
    share = (place - low)[:, None]
    matrix = torch.zeros(n, n, dtype=torch.float64)
    matrix.scatter_add_(1, low.long()[:, None], 1 - share)
    return matrix.scatter_add_(1, (low.long() + 1).clamp_max(n - 1)[:, None], share)


def separable(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """R x Cᵀ for images (N, c, h, w)."""
    return rows.to(x) @ x @ columns.to(x).T


def blurred(x: Tensor, sigma: float, border: str = "edge", truncate: float = 4.0) -> Tensor:
    """Images blurred by a Gaussian that is cut off at `truncate` σ."""
    kernel = gaussian(sigma, int(truncate * sigma + 0.5))
    return separable(x, *(convolution(n, kernel, border) for n in x.shape[2:]))


def zoomed(x: Tensor, factor: float) -> Tensor:
    """The middle of images, `factor` times as large."""
    return separable(x, *(magnification(n, factor) for n in x.shape[2:]))


def moved(x: Tensor, radius: float, sigma: float, angle: Tensor) -> Tensor:
    """Images smeared along an `angle` (N,) in degrees, as ImageMagick does it.

    Half a Gaussian of `2 radius + 1` pixels: pixel i is read at (i cos, i sin), rounded; beyond the border the nearest.
    """
    n, c, h, w = x.shape
    along = torch.arange(2 * math.ceil(radius) + 1, device=x.device)
    weights = torch.exp(-(along**2) / (2 * sigma**2))
    turn = torch.deg2rad(angle)[:, None]
    down, right = (torch.ceil(along * part - 0.5).long() for part in (turn.sin(), turn.cos()))
    rows = (torch.arange(h, device=x.device) + down[..., None]).clamp(0, h - 1)
    columns = (torch.arange(w, device=x.device) + right[..., None]).clamp(0, w - 1)
    result = torch.zeros_like(x)
    for i, weight in enumerate(weights / weights.sum()):
        source = (rows[:, i, :, None] * w + columns[:, i, None]).view(n, 1, h * w).expand(n, c, h * w)
        result += weight * x.flatten(2).gather(2, source).view_as(x)
    return result


def plasma(x: Tensor, decay: float, generator: torch.Generator) -> Tensor:
    """Clouds (N, 1, h, w) from 0 to 1, one for each image, by the diamond-square algorithm.

    `decay` is by how much the roughness falls each time the grid becomes twice as fine.
    """
    n, _, h, w = x.shape
    side = 2 ** max(1, math.ceil(math.log2(max(h, w))))
    cloud = torch.zeros(n, side, side, device=x.device)

    def rough_mean(total: Tensor) -> Tensor:
        return total / 4 + uniform(-(roughness**2), roughness**2, total.shape, generator, x.device)

    step, roughness = side, 100.0
    while step >= 2:
        half = step // 2
        corners = cloud[:, ::step, ::step]
        pairs = corners + corners.roll(-1, 1)
        cloud[:, half::step, half::step] = rough_mean(pairs + pairs.roll(-1, 2))
        middles = cloud[:, half::step, half::step]
        cloud[:, ::step, half::step] = rough_mean(middles + middles.roll(1, 1) + corners + corners.roll(-1, 2))
        cloud[:, half::step, ::step] = rough_mean(middles + middles.roll(1, 2) + corners + corners.roll(-1, 1))
        step, roughness = half, roughness / decay
    cloud -= cloud.amin((1, 2), keepdim=True)
    return (cloud / cloud.amax((1, 2), keepdim=True))[:, None, :h, :w]
