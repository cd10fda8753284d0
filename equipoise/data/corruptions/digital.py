"""Digital: low contrast, elastic distortion, large pixels; compression is in `jpeg`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ._images import blurred, constants, pixels, uniform, values

CONTRAST = (0.75, 0.5, 0.4, 0.3, 0.15)  # what is left of it
# of the shorter side: largest displacement, sigma of its smoothness, largest shift of the corners
ELASTIC = ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03))
PIXELATE = (0.95, 0.9, 0.85, 0.75, 0.65)  # of the pixels of a row


def contrast(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """Each channel drawn towards its mean over the image. Nothing is random."""
    x = values(images)
    mean = x.mean((2, 3), keepdim=True)
    return pixels(mean + constants(CONTRAST, severity) * (x - mean))


def elastic_transform(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """A random affine map that shifts three corners of a square, then a smooth random displacement of all pixels."""
    x = values(images)
    n, _, h, w = x.shape
    side = min(h, w)
    displaced, sigma, shifted = (side * share for share in constants(ELASTIC, severity))
    y, x_ = torch.meshgrid(torch.arange(h, device=x.device), torch.arange(w, device=x.device), indexing="ij")
    place = torch.stack((x_, y), dim=-1).float()  # (h, w, 2), to the right and down
    source = back_map(n, h, w, shifted, generator, x.device)
    x = read(x, place @ source[:, None, :2] + source[:, None, 2:], border="mirror")
    wind = blurred(uniform(-1, 1, (n, 2, h, w), generator, x.device), sigma, border="symmetric", truncate=3)
    return pixels(read(x, place + displaced * wind.permute(0, 2, 3, 1), border="symmetric"))


def back_map(n: int, h: int, w: int, shifted: float, generator: torch.Generator, device: torch.device) -> Tensor:
    """Matrices (n, 3, 2): the place (x, y, 1) @ matrix is where the affinely mapped image has it from."""
    middle, half = torch.tensor([w // 2, h // 2]).float(), max(1, min(h, w) // 3)
    corners = middle + half * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    corners = corners.to(device)
    goals = corners + uniform(-shifted, shifted, (n, 3, 2), generator, device)
    return torch.linalg.solve(F.pad(goals, (0, 1), value=1.0), corners.expand(n, 3, 2))


def read(x: Tensor, place: Tensor, border: str) -> Tensor:
    """Images read linearly at places (N, h, w, 2) in pixels, to the right and down."""
    mirrored = border == "mirror"
    size = torch.tensor([x.shape[3], x.shape[2]], device=x.device)
    grid = 2 * place / (size - 1).clamp_min(1) - 1 if mirrored else (2 * place + 1) / size - 1
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=mirrored)


def pixelate(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """Made smaller and large again, each pixel the mean of those whose middle it covers. Nothing is random.

    Values are rounded wherever Pillow rounds them: after columns and after rows, both times.
    """
    x = (255 * values(images)).double()
    share = constants(PIXELATE, severity)
    (h, w), (few_h, few_w) = x.shape[2:], (max(1, int(share * n)) for n in x.shape[2:])
    for rows, columns in ((box(h, few_h), box(w, few_w)), (box(few_h, h), box(few_w, w))):
        x = (x @ columns.to(x).T + 0.5).floor()
        x = (rows.to(x) @ x + 0.5).floor()
    return x.to(torch.uint8)


def box(n: int, size: int) -> Tensor:
    """The matrix (size, n) by which Pillow's box filter resizes n pixels."""
    scale = n / size
    reach = max(scale, 1.0)
    middle = (torch.arange(size).double()[:, None] + 0.5) * scale
    offset = (torch.arange(n) + 0.5 - middle) / reach
    covered = ((offset > -0.5) & (offset <= 0.5)).double()
    return covered / covered.sum(1, keepdim=True)
