"""The fifteen common corruptions in five severities, for batches of small images on their device.

What each does, and the constants of its severities, are those of CIFAR-10-C, whose images are 32 × 32. Lengths in
pixels grow with the shorter side of larger images. In smaller ones they stay: half of them are about a pixel already,
and a blur below that is none. So 28 × 28 is as CIFAR, and 8 × 8 is harder than it. Elastic distortion is relative to
the side at every size. Grey images have one channel and go the same way.

Reference: Hendrycks, Dietterich. Benchmarking Neural Network Robustness to Common Corruptions and Perturbations. ICLR
2019. Differs from it where a docstring says so, and in that values are rounded to uint8 rather than cut off.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...core import checks, known
from .blur import defocus_blur, glass_blur, motion_blur, zoom_blur
from .digital import contrast, elastic_transform, pixelate
from .jpeg import jpeg_compression
from .noise import gaussian_noise, impulse_noise, shot_noise
from .weather import brightness, fog, frost, snow

__all__ = ["CORRUPTIONS", "SEVERITIES", "corrupt"]

SEVERITIES = (1, 2, 3, 4, 5)

# in the order of the paper's table
CORRUPTIONS: dict[str, Callable[[Tensor, int, torch.Generator], Tensor]] = {
    "gaussian_noise": gaussian_noise,
    "shot_noise": shot_noise,
    "impulse_noise": impulse_noise,
    "defocus_blur": defocus_blur,
    "glass_blur": glass_blur,
    "motion_blur": motion_blur,
    "zoom_blur": zoom_blur,
    "snow": snow,
    "frost": frost,
    "fog": fog,
    "brightness": brightness,
    "contrast": contrast,
    "elastic_transform": elastic_transform,
    "pixelate": pixelate,
    "jpeg_compression": jpeg_compression,
}


def corrupt(images: Tensor, name: str, severity: int, seed: int = 0) -> Tensor:
    """Corrupted copies of uint8 images (N, 1 or 3, h, w), on their device.

    Random numbers are drawn on the CPU, so that a seed gives the same test images on every device. To draw them on a
    GPU, call ``CORRUPTIONS[name](images, severity, generator)`` with a generator that is there.

    >>> corrupt(torch.tensor([[[[0, 100, 250]]]], dtype=torch.uint8), "brightness", severity=2)
    tensor([[[[ 26, 126, 255]]]], dtype=torch.uint8)
    """
    known("corruption", name, CORRUPTIONS)
    generator = torch.Generator().manual_seed(checks.whole("seed", seed))
    return CORRUPTIONS[name](images, severity, generator)
