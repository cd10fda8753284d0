"""Weather: snow, frost, fog and bright light."""

from __future__ import annotations

import torch
from torch import Tensor

from ._images import constants, moved, normal, pixels, plasma, stretch, uniform, values, zoomed

# mean and deviation of the flakes, how much they are magnified, the value from which they are seen,
# radius and sigma of their fall, and how much of the image's colour is kept
SNOW = (
    (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
    (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
    (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
    (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
    (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
)
FROST = ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))  # of the image, of the frost
FOG = ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))  # density, decay of its roughness
BRIGHTNESS = (0.05, 0.1, 0.15, 0.2, 0.3)  # added to the value of hue, saturation, value

LUMA = (0.299, 0.587, 0.114)
ICE = (0.85, 0.95, 1.0)  # red, green and blue of the frost


def snow(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """Flakes that fall steeply, over an image that is whitened a little."""
    x = values(images)
    mean, deviation, factor, seen, radius, sigma, kept = constants(SNOW, severity)
    flakes = zoomed(mean + deviation * normal((len(x), 1, *x.shape[2:]), generator, x.device), factor)
    flakes = torch.where(flakes < seen, 0.0, flakes).clamp(0, 1)
    angle = uniform(-135, -45, (len(x),), generator, x.device)
    flakes = moved(flakes, radius * stretch(x), sigma * stretch(x), angle)
    whitened = kept * x + (1 - kept) * torch.maximum(x, 1.5 * grey(x) + 0.5)
    return pixels(whitened + flakes + flakes.flip(2, 3))


def frost(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """Ice on the window, added to a dimmed image.

    Differs from the paper: its six photographs of frost are not used. The ice is drawn: the ridges of a cloud, bright
    and slightly blue on a grey ground, another one for each image. Weights are the published ones.
    """
    x = values(images)
    of_image, of_frost = constants(FROST, severity)
    ridges = 1 - (2 * plasma(x, 1.75, generator) - 1).abs()
    ice = 0.3 + 0.7 * ridges**2
    if x.shape[1] == 3:
        ice = ice * x.new_tensor(ICE)[:, None, None]
    return pixels(of_image * x + of_frost * ice)


def fog(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """A cloud in front of each image, all made darker so that its brightest value stays."""
    x = values(images)
    density, decay = constants(FOG, severity)
    brightest = x.amax((1, 2, 3), keepdim=True)
    return pixels((x + density * plasma(x, decay, generator)) * brightest / (brightest + density))


def brightness(images: Tensor, severity: int, generator: torch.Generator) -> Tensor:
    """Bright light: the value of hue, saturation and value is raised. Nothing is random."""
    x = values(images)
    value = x.amax(1, keepdim=True)
    raised = (value + constants(BRIGHTNESS, severity)).clamp_max(1)
    return pixels(torch.where(value > 0, x * raised / value, raised))


def grey(x: Tensor) -> Tensor:
    """Luminance (N, 1, h, w)."""
    return x if x.shape[1] == 1 else (x * x.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)
