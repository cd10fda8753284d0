"""Rotation against a slow loop over pixels, by hand, and against Pillow."""

import numpy as np
import pytest
import torch

from equipoise.data import Rotation, rotate


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(n, flip, seed=0):
    """The random numbers of a batch, in their order: each sample's share of the largest angle, and its mirror."""
    generator = seeded(seed)
    turn = 2 * torch.rand(n, 1, 1, generator=generator) - 1
    mirror = torch.rand(n, 1, generator=generator) < 0.5 if flip else torch.zeros(n, 1, dtype=torch.bool)
    return turn.flatten().double().numpy(), mirror.flatten().numpy()


def slow_rotate(images, degrees, turn, mirror):
    """Pixel by pixel in float64: mirror the image, then read it where the rotated pixel came from."""
    n, _, h, w = images.shape
    out = np.zeros(images.shape)
    for s in range(n):
        image = images[s, :, :, ::-1] if mirror[s] else images[s]
        angle = np.radians(degrees * turn[s])
        for i in range(h):
            for j in range(w):
                # the offset from the centre, to the right and up, turned back by the angle
                right, up = j - (w - 1) / 2, (h - 1) / 2 - i
                x = np.cos(angle) * right + np.sin(angle) * up + (w - 1) / 2
                y = (h - 1) / 2 - (-np.sin(angle) * right + np.cos(angle) * up)
                for row in (int(np.floor(y)), int(np.floor(y)) + 1):
                    for column in (int(np.floor(x)), int(np.floor(x)) + 1):
                        if 0 <= row < h and 0 <= column < w:
                            weight = (1 - abs(y - row)) * (1 - abs(x - column))
                            out[s, :, i, j] += weight * image[:, row, column]
    return out


@pytest.mark.parametrize(("degrees", "flip"), [(0.0, True), (15.0, True), (15.0, False), (180.0, True)])
@pytest.mark.parametrize("shape", [(5, 3, 8, 8), (1, 1, 8, 8), (3, 3, 32, 32), (3, 1, 7, 12), (1, 1, 1, 1)], ids=str)
def test_like_the_slow_loop(shape, degrees, flip):
    images = torch.randint(0, 256, shape, generator=seeded(1))
    slow = slow_rotate(images.numpy(), degrees, *drawn(shape[0], flip))
    as_float = Rotation(degrees, flip)(images.float(), seeded())
    assert np.abs(as_float.numpy() - slow).max() < 5e-3
    as_bytes = Rotation(degrees, flip)(images.to(torch.uint8), seeded())
    assert np.abs(as_bytes.numpy() - slow).max() < 0.505, "rounded, not cut off"


def test_by_hand():
    """A quarter turn anticlockwise: 1 2 / 3 4 becomes 2 4 / 1 3."""
    seed = next(s for s in range(20) if abs(drawn(1, False, s)[0][0]) > 0.6)
    quarter = 90 / drawn(1, False, seed)[0][0]
    image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    turned = rotate(image, quarter, False, generator=seeded(seed))
    torch.testing.assert_close(turned, torch.tensor([[[[2.0, 4.0], [1.0, 3.0]]]]), atol=1e-5, rtol=0)


def test_like_pillow():
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (32, 32), dtype=np.uint8)
    turn, _ = drawn(1, False)
    theirs = np.asarray(image.fromarray(pixels).rotate(15 * turn[0], image.Resampling.BILINEAR)).astype(int)
    ours = rotate(torch.from_numpy(pixels)[None, None], 15.0, False, generator=seeded())[0, 0].numpy().astype(int)
    i, j = np.ogrid[:32, :32]
    away_from_the_border = (i - 15.5) ** 2 + (j - 15.5) ** 2 < 14**2
    assert np.abs(ours - theirs)[away_from_the_border].max() <= 1


def test_corners_become_black_and_the_centre_stays():
    result = Rotation(45.0)(torch.full((200, 1, 9, 9), 255, dtype=torch.uint8), seeded())
    assert (result[:, 0, 4, 4] == 255).all()
    assert (result[:, 0, 0, 0] < 128).sum() > 120


def test_angles_are_uniform_and_half_are_mirrored():
    """A single bright pixel right of the centre tells the angle; 5 standard deviations are allowed."""
    n = 1000
    images = torch.zeros(n, 1, 65, 65)
    images[:, 0, 32, 62] = 1.0
    result = Rotation(30.0)(images, seeded())[:, 0]
    rows, columns = (torch.arange(65.0) - 32)[:, None], torch.arange(65.0) - 32
    mass = result.sum((1, 2))
    x, y = (result * columns).sum((1, 2)) / mass, -(result * rows).sum((1, 2)) / mass
    mirrored = x < 0
    assert abs(int(mirrored.sum()) - n / 2) < 5 * (n / 4) ** 0.5
    angle = torch.rad2deg(torch.atan2(y, x.abs())) * torch.where(mirrored, -1, 1)
    assert angle.abs().max() < 31
    quarters = torch.histc(angle, 4, -30, 30)
    assert (quarters - n / 4).abs().max() < 5 * (n * 3 / 16) ** 0.5


@pytest.mark.parametrize("options", [{"degrees": -1}, {"degrees": 181}, {"degrees": "15"}, {"flip": 1}])
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Rotation(**options)
