"""Noise: Gaussian, shot and impulse."""

from __future__ import annotations

import torch
from torch import Tensor

from ._images import constants, normal, pixels, uniform, values

GAUSSIAN = (0.04, 0.06, 0.08, 0.09, 0.10)  # standard deviation
SHOT = (500, 250, 100, 75, 50)  # photons of white
IMPULSE = (0.01, 0.02, 0.03, 0.05, 0.07)  # share of values


def gaussian_noise(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    r"""Independent Gaussian noise on each value: :math:`x + \sigma \varepsilon`."""
    x = values(images)
    return pixels(x + constants(GAUSSIAN, severity) * normal(x.shape, generator, x.device))


def shot_noise(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    r"""The noise of few photons: :math:`\mathrm{Poisson}(k x) / k` with k photons of white."""
    x, photons = values(images), constants(SHOT, severity)
    counted = torch.poisson((x * photons).to(generator.device), generator).to(x.device)
    return pixels(counted / photons)


def impulse_noise(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """Salt and pepper: a share of the values, each channel of a pixel by itself, is 0 or 1, as often the one."""
    x, share = values(images), constants(IMPULSE, severity)
    drawn = uniform(0, 1, x.shape, generator, x.device)
    return pixels(torch.where(drawn < share, (drawn < share / 2).float(), x))
