"""Random rotations, shifts and mirrors."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import checks, register
from ._base import LARGEST_IMAGE, Augment, check_images, check_switch
from .crop_flip import crop_flip


def rotate(
    images: Tensor,
    degrees: float = 15.0,
    flip: bool = True,
    pad: int = 0,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Shift, mirror and rotate each image at random: images (N, c, h, w) -> (N, c, h, w). See `Rotation`."""
    images = crop_flip(images, pad, flip, generator=generator)
    turn = 2 * torch.rand(len(images), 1, 1, device=images.device, generator=generator) - 1
    return turned(images, torch.deg2rad(degrees * turn))


def turned(images: Tensor, angle: Tensor) -> Tensor:
    """Images (N, c, h, w) turned about their centres by angles (N, 1, 1), anticlockwise, in radians."""
    n, c, h, w = images.shape
    x = torch.arange(w, device=images.device) - (w - 1) / 2  # from the centre, in pixels
    y = torch.arange(h, device=images.device)[:, None] - (h - 1) / 2
    columns = (angle.cos() * x - angle.sin() * y + w / 2).floor().long()  # half a pixel more, so the nearest
    rows = (angle.sin() * x + angle.cos() * y + h / 2).floor().long()
    inside = (rows >= 0) & (rows < h) & (columns >= 0) & (columns < w)
    pixels = torch.where(inside, rows * w + columns, 0).view(n, 1, h * w).expand(n, c, h * w)
    return images.flatten(2).gather(2, pixels).view(n, c, h, w).masked_fill(~inside[:, None], 0)


@register("rotation", kind="augment", neutral={"degrees": 0.0, "flip": False})
class Rotation(Augment):
    r"""Turns each image about its centre by up to `degrees`, filling with black; before that shifts and mirrors it.

    .. math:: \tilde x_n(p) = \bar x_n\bigl(R(-\theta_n)\, p\bigr), \qquad \theta_n \sim U(-\theta, \theta)

    with p the offset from the image's centre in pixels, R a rotation, and :math:`\bar x_n` the image after
    :class:`CropFlip` with this `pad` and `flip`, read at the nearest pixel. A positive angle turns anticlockwise.

    Args:
        degrees: largest angle. 15 in the supplement of the bias loss, for CIFAR-100.
        flip: whether to mirror; off for digits and letters, which a mirror changes.
        pad: largest shift in pixels, before the rotation; what is shifted out stays out.

    Differs from the paper: the supplement names no shifts and no way to read between pixels. Public code whose
    accuracies it prints for cross-entropy (weiaicunzai/pytorch-cifar100) has shifts of up to 4 and the nearest pixel.

    Example:
        >>> Rotation(degrees=15.0, pad=4)(torch.ones(128, 3, 32, 32)).shape
        torch.Size([128, 3, 32, 32])
        >>> Rotation(degrees=0.0, flip=False)(torch.tensor([[[[1, 2]]]], dtype=torch.uint8))
        tensor([[[[1, 2]]]], dtype=torch.uint8)

    Reference: Abrahamyan, Ziatchin, Chen, Deligiannis. Bias Loss for Mobile Neural Networks. ICCV 2021, supplement.
    """

    def __init__(self, degrees: float = 15.0, flip: bool = True, pad: int = 0) -> None:
        self.degrees = checks.between("degrees", degrees, 0, 180)
        self.flip = check_switch("flip", flip)
        self.pad = checks.whole("pad", pad, 0, LARGEST_IMAGE)

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        check_images("Rotation", images)
        return rotate(images, self.degrees, self.flip, self.pad, generator=generator)
