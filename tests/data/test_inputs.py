"""Resizing and the centre crop."""

import numpy as np
import pytest
import torch

from equipoise.data import centre_crop, resize


def some_images(*shape):
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(0)).to(torch.uint8)


def slow_resize_axis(values, new):
    """The last axis of `values` read with a triangle as wide as the larger of an old and a new pixel."""
    old = values.shape[-1]
    scale = max(old / new, 1)
    out = np.zeros((*values.shape[:-1], new))
    for j in range(new):
        weights = [max(0, 1 - abs((k + 0.5) - (j + 0.5) * old / new) / scale) for k in range(old)]
        for k in range(old):
            out[..., j] += weights[k] / sum(weights) * values[..., k]
    return out


@pytest.mark.parametrize("size", [(8, 8), (16, 16), (20, 5), (3, 31), (1, 1)])
@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (1, 1, 13, 10)], ids=str)
def test_resize_like_the_slow_loop(shape, size):
    images = some_images(*shape)
    rows = slow_resize_axis(images.numpy().astype(float).swapaxes(2, 3), size[0]).swapaxes(2, 3)
    slow = slow_resize_axis(rows, size[1])
    assert np.abs(resize(images.double(), size).numpy() - slow).max() < 1e-6
    as_bytes = resize(images, size)
    assert as_bytes.dtype == torch.uint8 and np.abs(as_bytes.numpy() - slow).max() < 0.501


def test_resize_like_pillow():
    image = pytest.importorskip("PIL.Image")
    pixels = some_images(1, 3, 40, 30)
    theirs = image.fromarray(pixels[0].permute(1, 2, 0).numpy()).resize((17, 55), image.Resampling.BILINEAR)
    ours = resize(pixels, (55, 17))[0].permute(1, 2, 0).int().numpy()
    assert np.abs(ours - np.asarray(theirs).astype(int)).max() <= 1


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [((10, 20), 5, (5, 10)), ((20, 10), 5, (10, 5)), ((300, 400), 256, (256, 341)), ((7, 7), 3, (3, 3))],
)
def test_shorter_side(shape, size, expected):
    assert resize(some_images(2, 3, *shape), size).shape == (2, 3, *expected)


def test_resize_by_hand():
    # half the width: the new pixel covers both, with equal weight; half of 3 + 6 is 4.5, rounded to even
    assert resize(torch.tensor([[[[3, 6]]]], dtype=torch.uint8), (1, 1)).item() == 4
    assert resize(torch.tensor([[[[3.0, 6.0]]]]), (1, 1)).item() == 4.5


def test_same_size_is_the_same_image():
    images = some_images(2, 1, 5, 5)
    assert resize(images, 5) is images


@pytest.mark.parametrize(
    ("size", "rows", "columns"), [(2, (1, 3), (2, 4)), ((3, 6), (1, 4), (0, 6)), (5, (0, 5), (0, 5))]
)
def test_centre_crop_by_hand(size, rows, columns):
    images = some_images(2, 3, 5, 6)
    assert torch.equal(centre_crop(images, size), images[:, :, slice(*rows), slice(*columns)])


@pytest.mark.parametrize("size", [0, -1, (1, 2, 3), "2", 1.5, True, (2.0, 2)])
@pytest.mark.parametrize("function", [resize, centre_crop])
def test_bad_size(function, size):
    with pytest.raises(ValueError, match="size must be"):
        function(some_images(1, 1, 4, 4), size)


def test_crop_larger_than_the_image():
    with pytest.raises(ValueError, match="5 × 5 out of 4 × 9; resize"):
        centre_crop(some_images(1, 1, 4, 9), 5)


@pytest.mark.parametrize("function", [resize, centre_crop])
def test_bad_shape(function):
    with pytest.raises(ValueError, match=rf"{function.__name__} expects .* got \(3, 8, 8\)"):
        function(torch.zeros(3, 8, 8), 4)


@pytest.mark.parametrize("function", [resize, centre_crop])
def test_nothing_is_read_back_from_the_device(function):
    images = torch.empty(8, 3, 32, 32, dtype=torch.uint8, device="meta")
    result = function(images, (16, 24))
    assert result.shape == (8, 3, 16, 24) and result.dtype == torch.uint8
