"""The fourteen operations of AutoAugment, each image with its own: one warp, one look-up and one blend for them all.

An image that an operation is not meant for goes through it unchanged: it is warped by the identity, its pixels are
looked up in the table 0, 1, …, 255, it is blended with factor 1. Each is exact, so nothing need be selected after.
"""

from __future__ import annotations

import torch
from torch import Tensor

OPERATIONS = (
    "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate",
    "AutoContrast", "Invert", "Equalize", "Solarize", "Posterize", "Contrast", "Color", "Brightness", "Sharpness",
)  # fmt: skip
FILL = 128  # what comes in from outside of the image; the authors fill with CIFAR's mean colour, (125, 123, 114)


def operate(images: Tensor, operation: Tensor, strength: Tensor) -> Tensor:
    """Change uint8 images (N, 1 or 3, h, w), each by its operation (N,), an index into `OPERATIONS`, or −1 for none.

    `strength` (N,) is the slope of a shear, a translation's share of the side, an angle in degrees, Solarize's
    threshold, Posterize's bits, and the factor of Contrast, Color, Brightness and Sharpness; others have none.
    """
    images = warp(images, operation, strength)
    images = look_up(images, operation, strength)
    return blend(images, operation, strength)


def chosen(operation: Tensor, name: str) -> Tensor:
    """Which samples (N,) use the operation called `name`."""
    return operation == OPERATIONS.index(name)


def warp(images: Tensor, operation: Tensor, strength: Tensor) -> Tensor:
    """ShearX, ShearY, TranslateX, TranslateY and Rotate, reading the nearest pixel."""
    n, c, h, w = images.shape
    mine = operation == torch.arange(5, device=images.device)[:, None]
    shear_x, shear_y, shift_x, shift_y, degrees = torch.where(mine, strength, 0.0)[:, :, None, None]
    angle = torch.deg2rad(degrees)
    sin, cos = angle.sin(), angle.cos()
    x, y = torch.arange(w, device=images.device) + 0.5, torch.arange(h, device=images.device)[:, None] + 0.5
    u, v = x - w / 2, y - h / 2
    # at most one of the three terms is not the identity, so their order does not matter
    columns = (cos * u - sin * v + w / 2 + shear_x * y + shift_x * w).floor().long()
    rows = (sin * u + cos * v + h / 2 + shear_y * x + shift_y * h).floor().long()
    inside = (columns >= 0) & (columns < w) & (rows >= 0) & (rows < h)
    source = torch.where(inside, rows * w + columns, h * w).view(n, 1, h * w).expand(n, c, h * w)
    with_fill = torch.cat((images.flatten(2), images.new_full((n, c, 1), FILL)), dim=2)
    return with_fill.gather(2, source).view(n, c, h, w)


def look_up(images: Tensor, operation: Tensor, strength: Tensor) -> Tensor:
    """AutoContrast, Invert, Equalize, Solarize, Posterize, Contrast and Brightness: grey level -> grey level."""
    levels = torch.arange(256.0, device=images.device)  # floats: these whole numbers are exact, and faster to divide
    amount = strength[:, None, None]
    mean = (grey(images).flatten(2).float().mean(2, keepdim=True) + 0.5).floor()
    tables = {
        "AutoContrast": stretched(images, levels),
        "Invert": 255 - levels,
        "Equalize": equalized(images, levels),
        "Solarize": torch.where(levels < amount, levels, 255 - levels),
        "Posterize": bits_kept(levels, amount),
        "Contrast": mean + amount * (levels - mean),
        "Brightness": amount * levels,
    }
    table = levels.expand(*images.shape[:2], 256)
    for name, other in tables.items():
        table = torch.where(chosen(operation, name)[:, None, None], other, table)
    return table.clamp(0, 255).to(torch.uint8).gather(2, images.flatten(2).long()).view_as(images)


def stretched(images: Tensor, levels: Tensor) -> Tensor:
    """Tables (N, c, 256) that take each channel's darkest pixel to 0 and its lightest to 255."""
    low, high = images.flatten(2).amin(2, keepdim=True).float(), images.flatten(2).amax(2, keepdim=True).float()
    return torch.where(high > low, 255 * (levels - low) / (high - low), levels)


def equalized(images: Tensor, levels: Tensor) -> Tensor:
    """Tables (N, c, 256) after which all grey levels of a channel are about equally frequent.

    A pixel's new level is the number of darker pixels over `step`, a 255th of the pixels below the lightest level.
    """
    pixels = images.flatten(2).long()
    count = levels.new_zeros(*pixels.shape[:2], 256)
    count.scatter_add_(2, pixels, levels.new_ones(()).expand_as(pixels))
    up_to = count.cumsum(2)
    below_lightest = torch.where(up_to < pixels.shape[2], up_to, 0.0).amax(2, keepdim=True)
    step = (below_lightest / 255).floor()
    return torch.where(step > 0, (up_to - count + step / 2) / step, levels)


def bits_kept(levels: Tensor, bits: Tensor) -> Tensor:
    """Grey levels with their lowest bits cleared; a part of a bit is kept as a whole one."""
    dropped = (8 - bits).clamp(0, 8).int()
    return (levels.int() >> dropped << dropped).float()


def blend(images: Tensor, operation: Tensor, strength: Tensor) -> Tensor:
    """Color and Sharpness: away from the grey image, or from the smooth one, for factors above 1; towards it below."""
    x = images.float()
    sharpness = chosen(operation, "Sharpness")
    factor = torch.where(chosen(operation, "Color") | sharpness, strength, 1.0)[:, None, None, None]
    base = torch.where(sharpness[:, None, None, None], smooth(x), grey(images))
    return (base + factor * (x - base)).clamp_(0, 255).to(torch.uint8)


def grey(images: Tensor) -> Tensor:
    """Luminance (N, 1, h, w) in whole numbers, with the weights of ITU-R 601 in 16 bits."""
    if images.shape[1] == 1:
        return images.int()
    red, green, blue = images.int().unbind(1)
    return ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16)[:, None]


def smooth(x: Tensor) -> Tensor:
    """Each pixel with its eight neighbours, weighed 5 to 1, rounded; the outermost pixels stay as they are."""
    across = x[..., :-2] + x[..., 1:-1] + x[..., 2:]
    around = across[..., :-2, :] + across[..., 1:-1, :] + across[..., 2:, :]
    result = x.clone()
    inner = result[..., 1:-1, 1:-1]
    inner.mul_(4).add_(around).div_(13).round_()
    return result
