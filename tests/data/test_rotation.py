"""Rotation against a slow loop over pixels, by hand, and against Pillow."""

import numpy as np
import pytest
import torch

from equipoise.data import Rotation, rotate


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(n, flip, pad=0, seed=0):
    """The random numbers of a batch, in their order: where each image begins in its frame, its mirror, its share of
    the largest angle."""
    generator = seeded(seed)
    corner = torch.randint(2 * pad + 1, (2, n, 1), generator=generator)
    mirror = torch.rand(n, 1, generator=generator) < 0.5 if flip else torch.zeros(n, 1, dtype=torch.bool)
    turn = 2 * torch.rand(n, 1, 1, generator=generator) - 1
    return turn.flatten().double().numpy(), mirror.flatten().numpy(), corner[..., 0].T.numpy() - pad


def slow_rotate(images, degrees, turn, mirror, shift):
    """Pixel by pixel in float64: shift and mirror the image, then read it at the pixel nearest to where the rotated one
    came from. Also, of each pixel, how far that place is from the border between two pixels."""
    n, _, h, w = images.shape
    out, sure = np.zeros(images.shape), np.zeros((n, h, w))
    for s in range(n):
        image = np.zeros(images.shape[1:])
        for i in range(h):
            for j in range(w):
                row, column = i + shift[s][0], (w - 1 - j if mirror[s] else j) + shift[s][1]
                if 0 <= row < h and 0 <= column < w:
                    image[:, i, j] = images[s, :, row, column]
        angle = np.radians(degrees * turn[s])
        for i in range(h):
            for j in range(w):
                # the offset from the centre, to the right and up, turned back by the angle
                right, up = j - (w - 1) / 2, (h - 1) / 2 - i
                x = np.cos(angle) * right + np.sin(angle) * up + (w - 1) / 2
                y = (h - 1) / 2 - (-np.sin(angle) * right + np.cos(angle) * up)
                row, column = round(y), round(x)
                if 0 <= row < h and 0 <= column < w:
                    out[s, :, i, j] = image[:, row, column]
                sure[s, i, j] = 0.5 - max(abs(y - row), abs(x - column))
    return out, sure


@pytest.mark.parametrize(
    ("degrees", "flip", "pad"), [(0.0, True, 0), (15.0, True, 0), (15.0, False, 4), (15.0, True, 2), (180.0, True, 1)]
)
@pytest.mark.parametrize("shape", [(5, 3, 8, 8), (1, 1, 8, 8), (3, 3, 32, 32), (3, 1, 7, 12), (1, 1, 1, 1)], ids=str)
def test_like_the_slow_loop(shape, degrees, flip, pad):
    images = torch.randint(0, 256, shape, generator=seeded(1))
    slow, sure = slow_rotate(images.numpy(), degrees, *drawn(shape[0], flip, pad))
    checked = np.broadcast_to(sure[:, None] > 1e-3, shape)
    assert checked.mean() > 0.9
    for dtype in (torch.float32, torch.uint8, torch.bfloat16, torch.float64):
        ours = Rotation(degrees, flip, pad)(images.to(dtype), seeded())
        assert ours.dtype == dtype
        assert np.array_equal(ours.double().numpy()[checked], slow[checked]), "no pixel has a new value"


def test_by_hand():
    """A quarter turn anticlockwise: 1 2 / 3 4 becomes 2 4 / 1 3."""
    seed = next(s for s in range(20) if abs(drawn(1, False, seed=s)[0][0]) > 0.6)
    quarter = 90 / drawn(1, False, seed=seed)[0][0]
    image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    turned = rotate(image, quarter, False, generator=seeded(seed))
    assert torch.equal(turned, torch.tensor([[[[2.0, 4.0], [1.0, 3.0]]]]))


def test_what_is_shifted_out_does_not_come_back():
    """White images: the frame's black is turned with them, so a shift of all pixels leaves nothing."""
    shifted = rotate(torch.ones(64, 1, 4, 4), 15.0, pad=9, generator=seeded())
    *_, shift = drawn(64, True, 9)
    gone = (np.abs(shift) >= 4).any(1)
    assert 0 < gone.sum() < 64 and not shifted[torch.from_numpy(gone)].any()


def test_like_pillow():
    """It reckons with sixteen binary digits, so that now and then it takes the pixel beside."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (32, 32), dtype=np.uint8)
    for seed in range(5):
        turn, *_ = drawn(1, False, seed=seed)
        theirs = np.asarray(image.fromarray(pixels).rotate(15 * turn[0], image.Resampling.NEAREST))
        ours = rotate(torch.from_numpy(pixels)[None, None], 15.0, False, generator=seeded(seed))[0, 0].numpy()
        assert (ours == theirs).mean() > 0.995


def test_corners_become_black_and_the_centre_stays():
    result = Rotation(45.0)(torch.full((200, 1, 9, 9), 255, dtype=torch.uint8), seeded())
    assert (result[:, 0, 4, 4] == 255).all()
    assert (result[:, 0, 0, 0] == 0).sum() > 120


def test_angles_are_uniform_and_half_are_mirrored():
    """A bright spot right of the centre tells the angle; 5 standard deviations are allowed."""
    n = 1000
    images = torch.zeros(n, 1, 65, 65)
    images[:, 0, 31:34, 59:62] = 1.0
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


@pytest.mark.parametrize("options", [{"degrees": -1}, {"degrees": 181}, {"degrees": "15"}, {"flip": 1}, {"pad": -1}])
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Rotation(**options)
