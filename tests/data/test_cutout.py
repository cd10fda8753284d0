"""Cutout: squares against a slow loop, how often each pixel is hit, and where AutoAugment has it."""

import pytest
import torch

from equipoise.data import AutoAugment, cutout
from equipoise.data.augment._operations import FILL


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def holed(image, row, column, side):
    """One image (c, h, w) with a square of `side` around a pixel, pixel by pixel."""
    out = image.clone()
    for i in range(image.shape[1]):
        for j in range(image.shape[2]):
            if row - side // 2 <= i < row - side // 2 + side and column - side // 2 <= j < column - side // 2 + side:
                out[:, i, j] = FILL
    return out


@pytest.mark.parametrize("side", [0, 1, 4, 5, 40])
@pytest.mark.parametrize("shape", [(6, 3, 9, 7), (1, 1, 4, 4), (0, 3, 8, 8)])
def test_squares_are_those_of_the_definition(shape, side):
    images = torch.randint(0, 256, shape, generator=seeded(1)).to(torch.uint8)
    n, _, h, w = shape
    rows, columns = (torch.randint(length, (n, 1), generator=g) for g in [seeded()] for length in (h, w))
    found = cutout(images, side, generator=seeded())
    for image, row, column, got in zip(images, rows, columns, found, strict=True):
        assert torch.equal(got, holed(image, int(row), int(column), side))


def test_pixels_are_hit_as_often_as_squares_reach_them():
    # of 8 rows, squares of 4 around row c cover c - 2 to c + 1: row 4 is in those around 3 to 6, row 0 in those around
    # 0 to 2, row 7 in those around 6 and 7
    holes = cutout(torch.zeros(20_000, 1, 8, 8, dtype=torch.uint8), 4, generator=seeded()) == FILL
    hit = holes.double().mean((0, 1))
    found = [float(hit[4, 4]), float(hit[0, 0]), float(hit[7, 7]), float(hit[0, 4])]
    assert found == pytest.approx([16 / 64, 9 / 64, 4 / 64, 12 / 64], abs=0.01)


def test_autoaugment_has_it_last_and_draws_nothing_without():
    images = torch.randint(0, 256, (16, 3, 32, 32), generator=seeded(4)).to(torch.uint8)
    generator = seeded(7)
    plain = AutoAugment()(images, generator)
    expected = cutout(plain, 16, generator=generator)
    assert torch.equal(AutoAugment(cutout=16)(images, seeded(7)), expected)


def test_errors():
    with pytest.raises(ValueError, match="images of shape"):
        cutout(torch.zeros(3, 8, 8))
    with pytest.raises(ValueError, match="side must be"):
        cutout(torch.zeros(1, 3, 8, 8), -1)
    with pytest.raises(ValueError, match="cutout must be"):
        AutoAugment(cutout=1.5)
