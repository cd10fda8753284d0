"""Augmentation of whole batches on their device, before normalisation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import checks
from ..core import register, signature_repr


def crop_flip(images: Tensor, pad: int = 4, flip: bool = True, *, generator: torch.Generator | None = None) -> Tensor:
    """Shift and mirror each image at random: images (N, c, h, w) -> (N, c, h, w). See `CropFlip`."""
    n, c, h, w = images.shape
    device = images.device
    top, left = torch.randint(2 * pad + 1, (2, n, 1), device=device, generator=generator)
    rows, columns = torch.arange(h, device=device), torch.arange(w, device=device).expand(n, w)
    if flip:
        mirrored = torch.rand(n, 1, device=device, generator=generator) < 0.5
        columns = torch.where(mirrored, w - 1 - columns, columns)
    # one gather over the pixels of each padded image, for all its channels: half the time of indexing windows
    pixels = (top + rows)[:, :, None] * (w + 2 * pad) + (left + columns)[:, None, :]
    padded = F.pad(images, (pad, pad, pad, pad)).flatten(2)
    return padded.gather(2, pixels.view(n, 1, h * w).expand(n, c, h * w)).view(n, c, h, w)


def normalize(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """uint8 images (N, c, h, w) -> float32, each channel minus its `mean`, over its `std`, on the scale 0 to 1."""
    if images.dtype != torch.uint8:
        raise ValueError(f"normalize expects uint8 images with values 0 to 255, got {images.dtype}")
    return (images.float() / 255 - mean[:, None, None]) / std[:, None, None]


class Augment:
    """Changes images at random, never their labels: ``augment(images, generator)``, uint8 or float (N, c, h, w)."""

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({signature_repr(self)})"


@register("none", kind="augment")
class NoAugment(Augment):
    r"""Leaves images as they are.

    .. math:: \tilde x = x

    Differs from the paper: nothing known.

    Example:
        >>> NoAugment()(torch.tensor([[[[1, 2]]]]))
        tensor([[[[1, 2]]]])

    Reference: none.
    """

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return images


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
        self.pad = checks.whole("pad", pad)
        if not isinstance(flip, bool):
            raise ValueError(f"flip must be True or False, not {flip!r}")
        self.flip = flip

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        if images.dim() != 4:
            raise ValueError(f"CropFlip expects images of shape (N, c, h, w), got {tuple(images.shape)}")
        return crop_flip(images, self.pad, self.flip, generator=generator)
