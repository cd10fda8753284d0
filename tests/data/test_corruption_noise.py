"""Noise by its moments: on a constant image they are known."""

import pytest
import torch

from equipoise.data import corrupt
from equipoise.data.corruptions.noise import GAUSSIAN, IMPULSE, SHOT

N = 40 * 3 * 32 * 32


def noisy(name, severity, level=100):
    return corrupt(torch.full((40, 3, 32, 32), level, dtype=torch.uint8), name, severity).double().flatten()


@pytest.mark.parametrize("severity", range(1, 6))
def test_gaussian(severity):
    values = noisy("gaussian_noise", severity)
    sigma = 255 * GAUSSIAN[severity - 1]
    assert abs(values.mean() - 100) < 5 * sigma / N**0.5
    assert float(values.std()) == pytest.approx((sigma**2 + 1 / 12) ** 0.5, rel=0.02)  # rounding adds 1 / 12


@pytest.mark.parametrize("severity", range(1, 6))
def test_shot(severity):
    """Poisson: the variance of photons is their mean."""
    values = noisy("shot_noise", severity)
    photons = SHOT[severity - 1]
    sigma = 255 / photons * (photons * 100 / 255) ** 0.5
    assert abs(values.mean() - 100) < 5 * sigma / N**0.5 + 0.1
    assert float(values.std()) == pytest.approx((sigma**2 + 1 / 12) ** 0.5, rel=0.02)


def test_shot_noise_is_in_whole_photons():
    values = noisy("shot_noise", 5) * SHOT[4] / 255
    assert (values - values.round()).abs().max() < 0.5 * SHOT[4] / 255 + 1e-9


@pytest.mark.parametrize("severity", range(1, 6))
def test_impulse(severity):
    values = noisy("impulse_noise", severity)
    share = IMPULSE[severity - 1]
    for level in (0, 255):
        assert abs(float((values == level).sum()) - N * share / 2) < 5 * (N * share / 2) ** 0.5
    assert set(values.unique().tolist()) == {0, 100, 255}


def test_channels_have_their_own_noise():
    for name in ("gaussian_noise", "shot_noise", "impulse_noise"):
        red, green, _ = corrupt(torch.full((1, 3, 32, 32), 100, dtype=torch.uint8), name, 5)[0]
        assert not torch.equal(red, green)
