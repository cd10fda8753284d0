"""Weather: by hand, against HSV of the standard library, and the cloud against a loop."""

import colorsys

import numpy as np
import pytest
import torch

from equipoise.data import corrupt
from equipoise.data.corruptions import _images, weather


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def images(shape=(2, 3, 8, 8), seed=0):
    return torch.randint(0, 256, shape, generator=seeded(seed), dtype=torch.uint8)


@pytest.mark.parametrize("severity", range(1, 6))
def test_brightness_like_hsv(severity):
    x = images()
    x[0, :, 0, 0] = 0
    result = corrupt(x, "brightness", severity).permute(0, 2, 3, 1).reshape(-1, 3).numpy()
    for before, after in zip(x.permute(0, 2, 3, 1).reshape(-1, 3).tolist(), result, strict=True):
        h, s, v = colorsys.rgb_to_hsv(*(value / 255 for value in before))
        expected = colorsys.hsv_to_rgb(h, s, min(1, v + weather.BRIGHTNESS[severity - 1]))
        assert np.abs(after - 255 * np.array(expected)).max() <= 0.5 + 1e-3


def test_brightness_by_hand():
    """0.2 · 255 = 51 is added to grey; colours keep their ratio."""
    grey = torch.tensor([0, 100, 204, 205, 255], dtype=torch.uint8).view(1, 1, 1, 5)
    assert corrupt(grey, "brightness", 4).flatten().tolist() == [51, 151, 255, 255, 255]
    red = torch.tensor([100, 60, 0], dtype=torch.uint8).view(1, 3, 1, 1)
    assert corrupt(red, "brightness", 4).flatten().tolist() == [151, 91, 0]  # 0.6 of 151 is 90.6


def test_fog_by_hand():
    """The cloud is added, then all is darkened by max / (max + density)."""
    x = images((1, 1, 32, 32)) // 2
    density, decay = weather.FOG[2]
    cloud = _images.plasma(x.float(), decay, seeded()).double()
    assert float(cloud.min()) == 0 and float(cloud.max()) == 1
    top = float(x.max()) / 255
    expected = 255 * (x.double() / 255 + density * cloud) * top / (top + density)
    assert (corrupt(x, "fog", 3).double() - expected).abs().max() <= 0.5 + 1e-3


def slow_cloud(side, decay, generator):
    """The diamond-square algorithm, point by point, on a grid without a border."""
    grid = np.zeros((side, side))
    step, wibble = side, 100.0
    while step >= 2:
        half, n = step // 2, side // step

        def draw(n=n, wibble=wibble):
            drawn = torch.rand(1, n, n, generator=generator)[0].double().numpy()
            return wibble * (-wibble + 2 * wibble * drawn)

        noise = draw()
        for i in range(n):
            for j in range(n):
                corners = [grid[(i + a) % n * step, (j + b) % n * step] for a in (0, 1) for b in (0, 1)]
                grid[i * step + half, j * step + half] = sum(corners) / 4 + noise[i, j]
        for below in (0, half):  # the middles of the horizontal sides, then of the vertical ones
            noise = draw()
            for i in range(n):
                for j in range(n):
                    y, x = i * step + below, j * step + half - below
                    around = [
                        grid[(y + a) % side, (x + b) % side] for a, b in ((half, 0), (-half, 0), (0, half), (0, -half))
                    ]
                    grid[y, x] = sum(around) / 4 + noise[i, j]
        step, wibble = half, wibble / decay
    grid -= grid.min()
    return grid / grid.max()


@pytest.mark.parametrize(("size", "side"), [(8, 8), (28, 32), (5, 8)])
def test_the_cloud_like_the_loop(size, side):
    ours = _images.plasma(torch.zeros(1, 3, size, size), 2.5, seeded())
    assert ours.shape == (1, 1, size, size)
    np.testing.assert_allclose(ours[0, 0].numpy(), slow_cloud(side, 2.5, seeded())[:size, :size], atol=1e-5)


def test_snow_by_its_parts():
    x = images((2, 3, 32, 32))
    mean, deviation, factor, seen, radius, sigma, kept = weather.SNOW[3]
    generator = seeded()
    flakes = _images.zoomed(mean + deviation * torch.randn(2, 1, 32, 32, generator=generator), factor)
    flakes = flakes.clamp(0, 1) * (flakes >= seen)
    angle = -135 + 90 * torch.rand(2, generator=generator)
    flakes = _images.moved(flakes, radius, sigma, angle).double()
    value = x.double() / 255
    luminance = 0.299 * value[:, 0] + 0.587 * value[:, 1] + 0.114 * value[:, 2]
    white = torch.maximum(value, (1.5 * luminance + 0.5)[:, None])
    expected = 255 * (kept * value + (1 - kept) * white + flakes + torch.rot90(flakes, 2, (2, 3))).clamp(0, 1)
    assert (corrupt(x, "snow", 4).double() - expected).abs().max() <= 0.5 + 1e-3


def test_frost_adds_a_bluish_texture_of_the_published_weight():
    black = torch.zeros(20, 3, 32, 32, dtype=torch.uint8)
    for severity, (_, of_frost) in enumerate(weather.FROST, start=1):
        ice = corrupt(black, "frost", severity).double()
        red, green, blue = ice.mean((0, 2, 3))
        assert red < green < blue
        assert 0.25 < float(ice.max()) / 255 / of_frost <= 1.01
        assert float(ice.min()) > 0
        assert float(ice.std((2, 3)).mean()) > 10 * of_frost
    image = torch.full((1, 1, 32, 32), 200, dtype=torch.uint8)
    difference = corrupt(image, "frost", 5).double() - corrupt(torch.zeros_like(image), "frost", 5).double()
    assert difference.max() <= 0.75 * 200 + 1
