"""What all augmentations share: the contract, and reading images between their pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core import full_precision, register, signature_repr

if TYPE_CHECKING:
    from .resized_crop import ResizedCrop

LARGEST_IMAGE = 4_096  # pixels a side; a batch of 128 such images takes 26 GB


class Augment:
    """Changes images at random, never their labels: ``augment(images, generator)``, uint8 or float (N, c, h, w).

    One that begins by cutting boxes out of images says so by its `crop`. Where images are kept whole, the boxes are
    cut out of all of the image, and `after_crop` does the rest; any other augmentation acts on the test view.
    """

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        raise NotImplementedError

    @property
    def crop(self) -> ResizedCrop | None:
        """What it begins with, if that is a crop."""
        return None

    def after_crop(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """What is done to images once `crop` has cut them out."""
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


def check_images(owner: str, images: Tensor) -> None:
    """A batch: (N, c, h, w)."""
    if images.dim() != 4:
        raise ValueError(f"{owner} expects images of shape (N, c, h, w), got {tuple(images.shape)}")


def check_switch(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return value


def coin(n: int, device: torch.device, generator: torch.Generator | None, out: Tensor | None = None) -> Tensor:
    """True or False for each of n samples (n, 1), with probability 1/2."""
    return torch.lt(torch.rand(n, 1, device=device, generator=generator), 0.5, out=out)


def read_between(
    images: Tensor, rows: Tensor, columns: Tensor, mode: str = "bilinear", outside: str = "zeros"
) -> Tensor:
    """Values of images (N, c, h, w) at fractional rows and columns (N, H, W) -> (N, c, H, W).

    A whole number is the middle of a pixel. Outside of the image all is black, or with "border" like the nearest
    pixel. uint8 comes back as uint8, rounded.
    """
    h, w = images.shape[2:]
    values = full_precision(images) if images.is_floating_point() else images.float()
    grid = torch.stack(((2 * columns + 1) / w - 1, (2 * rows + 1) / h - 1), dim=-1).to(values.dtype)
    values = F.grid_sample(values, grid, mode=mode, padding_mode=outside, align_corners=False)
    return as_pixels(values, images.dtype)


def as_pixels(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Values in the type of the images they were made of; whole numbers from 0 to 255 where that is no float."""
    return values.to(dtype) if dtype.is_floating_point else values.round().clamp_(0, 255).to(dtype)
