"""Blur against loops in float64, SciPy, and the statement of the authors' code that makes the glass."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from equipoise.data import corrupt
from equipoise.data.corruptions import _images, blur


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def images(shape=(2, 3, 9, 12), seed=0):
    return torch.randint(0, 256, shape, generator=seeded(seed), dtype=torch.uint8)


def mirrored(i, n):
    """… 2 1 | 0 1 2 … n−1 | n−2 …"""
    while not 0 <= i < n:
        i = -i if i < 0 else 2 * (n - 1) - i
    return i


@pytest.mark.parametrize("border", ["edge", "mirror", "symmetric"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_borders_like_numpy(border, n):
    mode = {"edge": "edge", "mirror": "reflect", "symmetric": "symmetric"}[border]
    expected = np.pad(np.arange(n), 7, mode=mode)
    np.testing.assert_array_equal(_images.fold(torch.arange(-7, n + 7), n, border), expected)


@pytest.mark.parametrize(("sigma", "truncate"), [(0.05, 4), (0.25, 4), (0.4, 4), (1.3, 4), (6.4, 3)])
@pytest.mark.parametrize(("border", "mode"), [("edge", "nearest"), ("symmetric", "reflect"), ("mirror", "mirror")])
def test_gaussian_like_scipy(sigma, truncate, border, mode):
    x = images().double()
    ours = _images.blurred(x, sigma, border, truncate)
    theirs = ndimage.gaussian_filter(x.numpy(), (0, 0, sigma, sigma), mode=mode, truncate=truncate)
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-9)


def test_no_blur_at_all():
    x = images().double()
    assert torch.equal(_images.blurred(x, 0.0), x)


@pytest.mark.parametrize("factor", [1.0, 1.01, 1.06, 1.25, 1.75, 2.25])
@pytest.mark.parametrize("n", [8, 28, 32])
def test_zoom_like_scipy(factor, n):
    x = images((2, 1, n, n)).double()
    part = math.ceil(n / factor)
    top = (n - part) // 2
    theirs = ndimage.zoom(x[:, :, top : top + part, top : top + part].numpy(), (1, 1, factor, factor), order=1)
    extra = (theirs.shape[2] - n) // 2
    theirs = theirs[:, :, extra : extra + n, extra : extra + n]
    np.testing.assert_allclose(_images.zoomed(x, factor).numpy(), theirs, atol=1e-9)


def test_the_numbers_of_zooms():
    stops = (1.06, 1.11, 1.16, 1.21, 1.26)
    for count, stop in zip(blur.ZOOMS, stops, strict=True):
        np.testing.assert_allclose(1 + np.arange(count) / 100, np.arange(1, stop, 0.01), rtol=1e-12)


def test_zoom_blur_is_the_mean_of_the_zooms():
    x = images((2, 3, 32, 32))
    total = x.double()
    for factor in np.arange(1, 1.11, 0.01):
        total = total + _images.zoomed(x.double(), float(factor))
    expected = total / 13
    assert (corrupt(x, "zoom_blur", 2).double() - expected).abs().max() <= 0.5 + 1e-3


def slow_disc(radius, soft):
    """The kernel on a grid of 17 × 17, blurred by the nine weights of a Gaussian."""
    grid = np.zeros((17, 17))
    for i in range(17):
        for j in range(17):
            grid[i, j] = (i - 8) ** 2 + (j - 8) ** 2 <= radius**2
    grid /= grid.sum()
    weights = np.array([math.exp(-(k**2) / (2 * soft**2)) for k in (-1, 0, 1)])
    weights /= weights.sum()
    result = np.zeros((17, 17))
    for i in range(1, 16):
        for j in range(1, 16):
            for a in (-1, 0, 1):
                for b in (-1, 0, 1):
                    result[i, j] += weights[a + 1] * weights[b + 1] * grid[i + a, j + b]
    return result


@pytest.mark.parametrize("severity", range(1, 6))
def test_defocus_like_the_loop(severity):
    x = images((1, 1, 7, 9))
    kernel = slow_disc(*blur.DEFOCUS[severity - 1])
    expected = np.zeros((7, 9))
    for i in range(7):
        for j in range(9):
            for a in range(-8, 9):
                for b in range(-8, 9):
                    expected[i, j] += kernel[a + 8, b + 8] * float(x[0, 0, mirrored(i + a, 7), mirrored(j + b, 9)])
    assert np.abs(corrupt(x, "defocus_blur", severity)[0, 0].numpy() - expected).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("severity", range(1, 6))
def test_motion_like_the_loop(severity):
    x = images((2, 1, 8, 10))
    radius, sigma = blur.MOTION[severity - 1]
    angles = -45 + 90 * torch.rand(2, generator=seeded()).double()
    weights = [math.exp(-(i**2) / (2 * sigma**2)) for i in range(2 * radius + 1)]
    expected = np.zeros((2, 8, 10))
    for n, angle in enumerate(angles.tolist()):
        for row in range(8):
            for column in range(10):
                for i, weight in enumerate(weights):
                    down = math.ceil(i * math.sin(math.radians(angle)) - 0.5)
                    right = math.ceil(i * math.cos(math.radians(angle)) - 0.5)
                    r, c = min(max(row + down, 0), 7), min(max(column + right, 0), 9)
                    expected[n, row, column] += weight / sum(weights) * float(x[n, 0, r, c])
    assert np.abs(corrupt(x, "motion_blur", severity)[:, 0].numpy() - expected).max() <= 0.5 + 1e-3


def test_glass_is_what_the_authors_statement_does_to_arrays():
    """Their exchange of two pixels, run as they wrote it, on an array whose pixels have channels."""
    x = images((1, 3, 12, 12))
    down, right = (-1 + 2 * torch.rand(2, 1, 12, 12, generator=seeded())).floor().int()
    array = x[0].permute(1, 2, 0).numpy().copy()
    for h in range(12 - 1, 1, -1):
        for w in range(12 - 1, 1, -1):
            dy, dx = int(down[0, h, w]), int(right[0, h, w])
            assert dy in (-1, 0) and dx in (-1, 0)
            h_prime, w_prime = h + dy, w + dx
            array[h, w], array[h_prime, w_prime] = array[h_prime, w_prime], array[h, w]
    ours = blur.scattered(x.float(), 1, seeded())[0].permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(ours, array)
    assert (ours != x[0].permute(1, 2, 0).numpy()).any()


def test_glass_of_the_first_severity_only_moves_pixels():
    """A blur of sigma 0.05 is none."""
    x = images((1, 1, 32, 32))
    result = corrupt(x, "glass_blur", 1)
    assert torch.equal(result[..., :2, :], x[..., :2, :]) and torch.equal(result[..., :2], x[..., :2])
    for row in range(2, 32):
        for column in range(2, 32):
            near = x[0, 0, row - 1 : row + 1, column - 1 : column + 1]
            assert (near == result[0, 0, row, column]).any()


@pytest.mark.parametrize("severity", [3, 5])
def test_glass_by_its_parts(severity):
    x = images((2, 3, 32, 32))
    sigma, _, rounds = blur.GLASS[severity - 1]
    generator = seeded()
    values = ndimage.gaussian_filter(x.double().numpy(), (0, 0, sigma, sigma), mode="nearest")
    for _ in range(rounds):
        values = blur.scattered(torch.from_numpy(values), 1, generator).numpy()
    values = ndimage.gaussian_filter(values, (0, 0, sigma, sigma), mode="nearest")
    assert np.abs(corrupt(x, "glass_blur", severity).numpy() - values).max() <= 0.5 + 1e-3
