"""Random rotations and mirrors."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import checks, register
from ._base import Augment, check_images, check_switch, coin, read_between


def rotate(
    images: Tensor, degrees: float = 15.0, flip: bool = True, *, generator: torch.Generator | None = None
) -> Tensor:
    """Rotate and mirror each image at random: images (N, c, h, w) -> (N, c, h, w). See `Rotation`."""
    n, _, h, w = images.shape
    device = images.device
    turn = 2 * torch.rand(n, 1, 1, device=device, generator=generator) - 1
    angle = torch.deg2rad(degrees * turn)
    x = torch.arange(w, device=device) - (w - 1) / 2  # from the centre, in pixels
    y = torch.arange(h, device=device)[:, None] - (h - 1) / 2
    columns, rows = angle.cos() * x - angle.sin() * y, angle.sin() * x + angle.cos() * y
    if flip:
        columns = torch.where(coin(n, device, generator)[:, None], -columns, columns)
    return read_between(images, rows + (h - 1) / 2, columns + (w - 1) / 2)


@register("rotation", kind="augment", neutral={"degrees": 0.0, "flip": False})
class Rotation(Augment):
    r"""Mirrors half of the images, and turns each about its centre by up to `degrees`, filling with black.

    .. math:: \tilde x_n(p) = x_n\bigl(F_n R(-\theta_n)\, p\bigr), \qquad \theta_n \sim U(-\theta, \theta)

    with p the offset from the image's centre in pixels, R a rotation, :math:`F_n` a mirror or not, with probability
    1/2 each, and :math:`x_n` read bilinearly between pixels. A positive angle turns anticlockwise.

    Args:
        degrees: largest angle. 15 in the supplement of the bias loss, for CIFAR-100.
        flip: whether to mirror; off for digits and letters, which a mirror changes.

    Differs from the paper: nothing known; the supplement names neither the interpolation nor the filling.

    Example:
        >>> Rotation(degrees=15.0)(torch.ones(128, 3, 32, 32)).shape
        torch.Size([128, 3, 32, 32])
        >>> Rotation(degrees=0.0, flip=False)(torch.tensor([[[[1, 2]]]], dtype=torch.uint8))
        tensor([[[[1, 2]]]], dtype=torch.uint8)

    Reference: Abrahamyan, Ziatchin, Chen, Deligiannis. Bias Loss for Mobile Neural Networks. ICCV 2021, supplement.
    """

    def __init__(self, degrees: float = 15.0, flip: bool = True) -> None:
        self.degrees = checks.between("degrees", degrees, 0, 180)
        self.flip = check_switch("flip", flip)

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        check_images("Rotation", images)
        return rotate(images, self.degrees, self.flip, generator=generator)
