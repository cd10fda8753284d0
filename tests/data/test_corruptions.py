"""Every corruption: what all share, that severity tells, and what is published of it."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from equipoise.data import CORRUPTIONS, SEVERITIES, corrupt, load_task
from equipoise.data.corruptions import blur, digital, jpeg, noise, weather

WITHOUT_CHANCE = {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"}

PUBLISHED_UNEVEN = ("glass_blur", "frost", "elastic_transform")  # these have tests of their own


@pytest.fixture(scope="module")
def digits():
    return load_task("digits").test.images[:120]


@pytest.fixture(scope="module")
def large(digits):
    """The same at 32 × 32, the size of the published constants."""
    return F.interpolate(digits.float(), size=(32, 32), mode="bicubic").round().clamp(0, 255).to(torch.uint8)


def distance(a, b):
    """Root of the mean squared difference of pixels."""
    return float((a.double() - b.double()).square().mean().sqrt())


def test_there_are_fifteen():
    assert len(CORRUPTIONS) == 15 and SEVERITIES == (1, 2, 3, 4, 5)


def test_constants_are_the_published_ones():
    """Copied once more from the authors' file for CIFAR-10-C."""
    assert noise.GAUSSIAN == (0.04, 0.06, 0.08, 0.09, 0.10)
    assert noise.SHOT == (500, 250, 100, 75, 50)
    assert noise.IMPULSE == (0.01, 0.02, 0.03, 0.05, 0.07)
    assert blur.DEFOCUS == ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))
    assert blur.GLASS == ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))
    assert blur.MOTION == ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))
    assert [row[:3] for row in weather.SNOW] == [
        (0.1, 0.2, 1), (0.1, 0.2, 1), (0.15, 0.3, 1.75), (0.25, 0.3, 2.25), (0.3, 0.3, 1.25)
    ]  # fmt: skip
    assert [row[3:] for row in weather.SNOW] == [
        (0.6, 8, 3, 0.95), (0.5, 10, 4, 0.9), (0.55, 10, 4, 0.9), (0.6, 12, 6, 0.85), (0.65, 14, 12, 0.8)
    ]  # fmt: skip
    assert weather.FROST == ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))
    assert weather.FOG == ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))
    assert weather.BRIGHTNESS == (0.05, 0.1, 0.15, 0.2, 0.3)
    assert digital.CONTRAST == (0.75, 0.5, 0.4, 0.3, 0.15)
    assert digital.ELASTIC == (
        (0, 0, 0.08),
        (0.05, 0.2, 0.07),
        (0.08, 0.06, 0.06),
        (0.1, 0.04, 0.05),
        (0.1, 0.03, 0.03),
    )
    assert digital.PIXELATE == (0.95, 0.9, 0.85, 0.75, 0.65)
    assert jpeg.QUALITY == (80, 65, 58, 50, 40)


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize(
    "shape", [(4, 1, 8, 8), (3, 3, 32, 32), (2, 1, 28, 28), (2, 3, 9, 14), (1, 3, 1, 1), (2, 1, 2, 3)], ids=str
)
def test_shape_type_and_seed(name, shape):
    images = torch.randint(0, 256, shape, dtype=torch.uint8)
    before = images.clone()
    for severity in (1, 5):
        one, again, other = (corrupt(images, name, severity, seed=seed) for seed in (0, 0, 1))
        assert one.shape == images.shape and one.dtype == torch.uint8 and one.device == images.device
        assert torch.equal(one, again)
        if name in WITHOUT_CHANCE:
            assert torch.equal(one, other)
        elif min(shape[2:]) >= 8:
            assert not torch.equal(one, other)
    assert torch.equal(images, before), "the images given stay as they are"


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_no_images_are_no_images(name):
    assert corrupt(torch.zeros(0, 3, 8, 8, dtype=torch.uint8), name, 3).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("name", sorted(WITHOUT_CHANCE))
def test_an_image_does_not_depend_on_the_others(name, large):
    whole = corrupt(large, name, 4)
    for i in (0, 7):
        assert (whole[i : i + 1].int() - corrupt(large[i : i + 1], name, 4).int()).abs().max() <= 1


@pytest.mark.parametrize("name", [name for name in CORRUPTIONS if name not in WITHOUT_CHANCE])
def test_each_image_has_its_own_chance(name, large):
    alike = large[:1].expand(6, 1, 32, 32).contiguous()
    results = corrupt(alike, name, 5)
    assert all(not torch.equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("name", [n for n in CORRUPTIONS if n not in PUBLISHED_UNEVEN])
def test_severity_grows(name, large):
    far = [distance(corrupt(large, name, severity), large) for severity in SEVERITIES]
    if name == "pixelate":  # 27 pixels lie better in the strokes of these digits than 28
        far.pop(2)
    assert far[0] > 0.5
    assert far == sorted(far) and far[-1] > 1.5 * far[0]


@pytest.mark.parametrize("name", [n for n in CORRUPTIONS if n not in (*PUBLISHED_UNEVEN, "pixelate")])
def test_severity_grows_on_digits_of_8_pixels(name, digits):
    far = [distance(corrupt(digits, name, severity), digits) for severity in SEVERITIES]
    assert far == sorted(far) and far[-1] > far[0]


def test_severity_of_glass_grows_in_rounds(large):
    """With the published constants the second and third severity blur more than the first and so mend its errors."""
    one, two, three, four, five = (distance(corrupt(large, "glass_blur", s), large) for s in SEVERITIES)
    assert max(one, two, three) < min(four, five)


def test_severity_of_frost_grows(large):
    """The fourth has as much frost as the third, and less of the image."""
    one, two, three, four, five = (distance(corrupt(large, "frost", s), large) for s in SEVERITIES)
    assert one < two < three < five and abs(four - three) < 0.1 * three


def test_elastic_distortion_goes_from_affine_to_local():
    """A ramp shows where its pixels come from: what no affine map explains of it grows with the severity."""
    row, column = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    ramp = (4 * column + 60).round().to(torch.uint8).expand(50, 1, 32, 32)
    plane = torch.stack((row, column, torch.ones(32, 32)), dim=-1)[8:-8, 8:-8].reshape(-1, 3)
    rest = []
    for severity in SEVERITIES:
        inner = corrupt(ramp, "elastic_transform", severity)[:, 0, 8:-8, 8:-8].float().reshape(50, -1, 1)
        fit = torch.linalg.lstsq(plane.expand(50, -1, -1), inner).solution
        rest.append(float((inner - plane @ fit).square().mean().sqrt()))
    assert rest == sorted(rest)
    assert rest[0] < 0.5 < 2 < rest[-1], "rounding alone at first; half a pixel and more in the end"


@pytest.mark.parametrize("name", sorted(WITHOUT_CHANCE))
def test_grey_is_as_three_equal_channels(name, large):
    grey, colour = corrupt(large, name, 3), corrupt(large.expand(-1, 3, -1, -1), name, 3)
    assert (colour.int() - grey.int()).abs().max() <= 1


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("level", [0, 255])
def test_black_and_white_images_give_no_nan(name, level):
    """NaN as uint8 would be 0 here and something else there."""
    images = torch.full((2, 3, 16, 16), level, dtype=torch.uint8)
    result = corrupt(images, name, 5).float()
    if name in ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "contrast", "elastic_transform", "pixelate"):
        assert (result == level).all()
    elif name == "fog":
        assert (result == 0).all() if level == 0 else result.mean() > 0
    elif name == "shot_noise" and level == 0:
        assert (result == 0).all()


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("severity", [0, 6, 2.5, True, "3"])
def test_bad_severity(name, severity):
    with pytest.raises(ValueError, match="severity"):
        corrupt(torch.zeros(1, 1, 8, 8, dtype=torch.uint8), name, severity)


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize(
    "images",
    [
        torch.zeros(1, 1, 8, 8),
        torch.zeros(1, 8, 8, dtype=torch.uint8),
        torch.zeros(1, 2, 8, 8, dtype=torch.uint8),
        torch.zeros(1, 1, 0, 8, dtype=torch.uint8),
    ],
    ids=["float", "no channels", "two channels", "no rows"],
)
def test_bad_images(name, images):
    with pytest.raises(ValueError, match="corruptions are for uint8 images"):
        corrupt(images, name, 1)


def test_bad_name_and_seed():
    images = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    with pytest.raises(ValueError, match="no corruption is named 'fogg'. Did you mean 'fog'"):
        corrupt(images, "fogg", 1)
    with pytest.raises(ValueError, match="seed"):
        corrupt(images, "fog", 1, seed=-1)


def test_lengths_grow_with_larger_images():
    """A line of one pixel in 32 is one of four in 128, and the same blur spreads it alike."""
    small = torch.zeros(1, 1, 32, 32, dtype=torch.uint8)
    small[..., 16, :] = 255
    large = small.repeat_interleave(4, 2).repeat_interleave(4, 3)
    for name in ("defocus_blur", "motion_blur"):
        peak_small, peak_large = (corrupt(x, name, 5).float().mean((0, 1, 3)).max() for x in (small, large))
        assert abs(float(peak_small - peak_large)) < 60
    assert np.isclose(float(corrupt(large, "defocus_blur", 5).float().mean()), float(large.float().mean()), atol=0.5)
