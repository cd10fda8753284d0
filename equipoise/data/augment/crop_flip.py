"""Random shifts and mirrors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core import checks, register
from ._base import LARGEST_IMAGE, Augment, check_images, check_switch, coin


def crop_flip(images: Tensor, pad: int = 4, flip: bool = True, *, generator: torch.Generator | None = None) -> Tensor:
    """Shift and mirror each image at random: images (N, c, h, w) -> (N, c, h, w). See `CropFlip`."""
    return moved(images, pad, *draw_moves(len(images), pad, flip, images.device, generator))


def draw_moves(
    n: int,
    pad: int,
    flip: bool,
    device: torch.device,
    generator: torch.Generator | None,
    out: tuple[Tensor | None, Tensor | None] = (None, None),
) -> tuple[Tensor, Tensor | None]:
    """Of n images, where in their frames they begin, (2, n, 1): rows, columns; and which are mirrored, (n, 1)."""
    corner = torch.randint(2 * pad + 1, (2, n, 1), device=device, generator=generator, out=out[0])
    return corner, coin(n, device, generator, out[1]) if flip else None


def moved(images: Tensor, pad: int, corner: Tensor, mirrored: Tensor | None) -> Tensor:
    """What `draw_moves` has drawn, done."""
    n, c, h, w = images.shape
    top, left = corner
    rows, columns = torch.arange(h, device=images.device), torch.arange(w, device=images.device).expand(n, w)
    if mirrored is not None:
        columns = torch.where(mirrored, w - 1 - columns, columns)
    # one gather over the pixels of each padded image, for all its channels: half the time of indexing windows
    pixels = (top + rows)[:, :, None] * (w + 2 * pad) + (left + columns)[:, None, :]
    padded = F.pad(images, (pad, pad, pad, pad)).flatten(2)
    return padded.gather(2, pixels.view(n, 1, h * w).expand(n, c, h * w)).view(n, c, h, w)


@register("crop_flip", kind="augment", neutral={"pad": 0, "flip": False})
class CropFlip(Augment):
    r"""Shifts each image by up to `pad` pixels, filling with black, and mirrors half of them.

    .. math:: \tilde x_n(i, j) = \bar x_n\bigl(a_n + i,\; b_n + f_n(j)\bigr), \qquad a_n, b_n \sim U\{0, …, 2p\}

    with :math:`\bar x` the image in a frame of p = `pad` zeros, and :math:`f_n(j)` either :math:`j` or
    :math:`w - 1 - j`, with probability 1/2 each.

    Args:
        pad: largest shift in pixels. 4 is usual for images of 32 × 32.
        flip: whether to mirror; off for digits and letters, which a mirror changes.

    Differs from the paper: nothing known. The frame is black before normalisation, as in the public code of the
    papers on CIFAR.

    Example:
        >>> CropFlip(pad=1)(torch.ones(128, 3, 32, 32)).shape
        torch.Size([128, 3, 32, 32])
        >>> CropFlip(pad=0, flip=False)(torch.tensor([[[[1, 2]]]]))
        tensor([[[[1, 2]]]])

    Reference: He, Zhang, Ren, Sun. Deep Residual Learning for Image Recognition. CVPR 2016, section 4.2.
    """

    def __init__(self, pad: int = 4, flip: bool = True) -> None:
        self.pad = checks.whole("pad", pad, 0, LARGEST_IMAGE)
        self.flip = check_switch("flip", flip)

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        check_images("CropFlip", images)
        return crop_flip(images, self.pad, self.flip, generator=generator)
