"""Contrast by hand, elastic distortion against SciPy, pixels and JPEG against Pillow."""

import io

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import ndimage

from equipoise.data import corrupt
from equipoise.data.corruptions import digital, jpeg


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def photographs():
    """Patches of 32 × 32 of a real photograph, at half its size."""
    pytest.importorskip("PIL")
    from sklearn.datasets import load_sample_image

    whole = torch.from_numpy(np.array(load_sample_image("china.jpg"))).permute(2, 0, 1)[None].float()
    half = F.interpolate(whole, scale_factor=0.5, mode="area")[:, :, :192, :320].round().to(torch.uint8)
    return half.unfold(2, 32, 32).unfold(3, 32, 32).permute(0, 2, 3, 1, 4, 5).reshape(-1, 3, 32, 32).contiguous()


def as_arrays(images):
    return [image.permute(1, 2, 0).numpy().squeeze() for image in images]


def from_arrays(arrays, like):
    return torch.stack([torch.from_numpy(np.array(a).reshape(*like.shape[2:], -1)).permute(2, 0, 1) for a in arrays])


def test_contrast_by_hand():
    """Mean 100; 0.15 of the distance from it remains. Channels have their own mean."""
    x = torch.tensor([[0, 200], [60, 140]], dtype=torch.uint8).view(1, 1, 2, 2)
    assert corrupt(x, "contrast", 5).flatten().tolist() == [85, 115, 94, 106]
    two = torch.cat((x, x, torch.full_like(x, 7)), dim=1)
    assert corrupt(two, "contrast", 2)[0, 2].flatten().tolist() == [7] * 4


def test_elastic_like_scipy():
    x = torch.randint(0, 256, (2, 3, 32, 32), generator=seeded(1), dtype=torch.uint8)
    displaced, sigma, shifted = (32 * share for share in digital.ELASTIC[3])
    generator = seeded()
    shifts = (-shifted + 2 * shifted * torch.rand(2, 3, 2, generator=generator)).double().numpy()
    wind = (-1 + 2 * torch.rand(2, 2, 32, 32, generator=generator)).double().numpy()
    ours = corrupt(x, "elastic_transform", 4).double().numpy()
    corners = np.array([[26.0, 26.0], [26.0, 6.0], [6.0, 6.0]])  # 16 ± 32 // 3, as (x, y)
    row, column = np.mgrid[:32, :32].astype(float)
    for n in range(2):
        # forwards: corners to shifted corners; the image is read at the inverse
        forward = np.linalg.solve(np.c_[corners, np.ones(3)], corners + shifts[n]).T
        inverse = np.linalg.inv(np.vstack([forward, [0, 0, 1]]))
        x_from, y_from, _ = np.einsum("ij,jhw->ihw", inverse, np.stack([column, row, np.ones((32, 32))]))
        dx, dy = (ndimage.gaussian_filter(part, sigma, mode="reflect", truncate=3) * displaced for part in wind[n])
        for c in range(3):
            once = ndimage.map_coordinates(x[n, c].double().numpy(), [y_from, x_from], order=1, mode="mirror")
            twice = ndimage.map_coordinates(once, [row + dy, column + dx], order=1, mode="reflect")
            assert np.abs(ours[n, c] - twice).max() <= 0.5 + 0.02


@pytest.mark.parametrize("size", [32, 28, 8])
@pytest.mark.parametrize("channels", [1, 3])
def test_pixelate_is_pillow_s(photographs, size, channels):
    image = pytest.importorskip("PIL.Image")
    x = photographs[:, :channels, :size, :size].contiguous()
    for severity, share in enumerate(digital.PIXELATE, start=1):
        few = int(size * share)
        theirs = [
            image.fromarray(a).resize((few, few), image.Resampling.BOX).resize((size, size), image.Resampling.BOX)
            for a in as_arrays(x)
        ]
        assert torch.equal(corrupt(x, "pixelate", severity), from_arrays(theirs, x))


def pillow_jpeg(images, quality):
    image = pytest.importorskip("PIL.Image")
    result = []
    for array in as_arrays(images):
        file = io.BytesIO()
        image.fromarray(array).save(file, "JPEG", quality=quality)
        result.append(image.open(file))
    return from_arrays(result, images)


@pytest.mark.parametrize(
    ("size", "channels", "share"),
    [(32, 1, 0.08), (28, 1, 0.08), (8, 1, 0.2), (32, 3, 0.11), (28, 3, 0.08), (8, 3, 0.2)],
)
def test_jpeg_is_near_to_pillow_s(photographs, size, channels, share):
    """What differs is a small share of what compression does; that is little in the smallest images."""
    x = photographs[:, :channels, :size, :size].contiguous()
    for severity, quality in enumerate(jpeg.QUALITY, start=1):
        theirs = pillow_jpeg(x, quality).double()
        apart = (corrupt(x, "jpeg_compression", severity).double() - theirs).abs().mean()
        assert apart < min(0.5, share * (x.double() - theirs).abs().mean())


def test_jpeg_colours_end_where_the_image_does(photographs):
    """28 columns of colour are 14 in two blocks of 8; what fills the second is not to be seen."""
    x = photographs[..., :28, :28].contiguous()
    apart = (jpeg.compressed(x, 80).double() - pillow_jpeg(x, 80).double()).abs()
    assert apart[..., -1].mean() < 1.2 * apart.mean() and apart[..., -1, :].mean() < 1.2 * apart.mean()


def test_the_cosine_transform_is_orthogonal_and_that_of_scipy():
    from scipy.fft import dct

    waves = jpeg.cosines().numpy()
    np.testing.assert_allclose(waves @ waves.T, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(waves, dct(np.eye(8), axis=0, norm="ortho"), atol=1e-12)


def test_jpeg_tables():
    """As libjpeg prints them for quality 50, 80 and 1: unchanged, 40 %, and at most 255."""
    assert jpeg.scaled(jpeg.LUMINANCE, 50).tolist() == [list(row) for row in jpeg.LUMINANCE]
    assert jpeg.scaled(jpeg.LUMINANCE, 80)[0].tolist() == [6, 4, 4, 6, 10, 16, 20, 24]
    assert jpeg.scaled(jpeg.CHROMINANCE, 1).min() == 255
    assert jpeg.scaled(jpeg.LUMINANCE, 100).max() == 1


def test_jpeg_tables_are_pillow_s(photographs):
    image = pytest.importorskip("PIL.Image")
    for quality in jpeg.QUALITY:
        file = io.BytesIO()
        image.fromarray(as_arrays(photographs)[0]).save(file, "JPEG", quality=quality)
        tables = image.open(file).quantization
        assert sorted(tables[0]) == sorted(jpeg.scaled(jpeg.LUMINANCE, quality).flatten().tolist())
        assert sorted(tables[1]) == sorted(jpeg.scaled(jpeg.CHROMINANCE, quality).flatten().tolist())


def test_jpeg_leaves_constant_images():
    x = torch.full((1, 3, 20, 12), 128, dtype=torch.uint8)
    assert torch.equal(jpeg.compressed(x, 10), x)
