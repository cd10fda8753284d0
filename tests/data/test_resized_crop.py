"""Resized crop against a slow loop over tries and pixels, and by hand."""

import math

import numpy as np
import pytest
import torch

from equipoise.data import ResizedCrop, resized_crop
from equipoise.data.augment.resized_crop import random_boxes


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def slow_box(h, w, area, aspect, shares, shapes, down, right):
    """Try one box after the other; the first that fits is put at a random place, else the largest in the middle."""
    for share, shape in zip(shares, shapes, strict=True):
        pixels = h * w * (area[0] + (area[1] - area[0]) * share)
        ratio = math.exp(math.log(aspect[0]) * (1 - shape) + math.log(aspect[1]) * shape)
        height, width = round(math.sqrt(pixels / ratio)), round(math.sqrt(pixels * ratio))
        if 0 < height <= h and 0 < width <= w:
            return int(down * (h - height + 1)), int(right * (w - width + 1)), height, width
    height, width = h, w
    if w / h < aspect[0]:
        height = max(1, round(w / aspect[0]))
    elif w / h > aspect[1]:
        width = max(1, round(h * aspect[1]))
    return (h - height) // 2, (w - width) // 2, height, width


def drawn(n, h, w, area, aspect, flip, seed=0):
    """Boxes and mirrors of a batch, from the same random numbers in the same order."""
    generator = seeded(seed)
    shares, shapes = torch.rand(2, 10, n, 1, generator=generator).double().numpy()
    down, right = torch.rand(2, n, 1, generator=generator).double().numpy()
    mirror = torch.rand(n, 1, generator=generator) < 0.5 if flip else torch.zeros(n, 1, dtype=torch.bool)
    boxes = [slow_box(h, w, area, aspect, shares[:, s, 0], shapes[:, s, 0], down[s, 0], right[s, 0]) for s in range(n)]
    return boxes, mirror.flatten().tolist()


def slow_bilinear(crop, out_h, out_w):
    """A crop (c, h, w) scaled to (c, out_h, out_w), its outermost pixels repeated."""
    c, h, w = crop.shape
    out = np.zeros((c, out_h, out_w))
    for i in range(out_h):
        for j in range(out_w):
            y = min(max((i + 0.5) * h / out_h - 0.5, 0), h - 1)
            x = min(max((j + 0.5) * w / out_w - 0.5, 0), w - 1)
            for row in range(math.floor(y), math.ceil(y) + 1):
                for column in range(math.floor(x), math.ceil(x) + 1):
                    out[:, i, j] += (1 - abs(y - row)) * (1 - abs(x - column)) * crop[:, row, column]
    return out


def slow_bicubic(image, box, out_h, out_w):
    """The box of an image (c, H, W), read with the cubic kernel of a = -0.75; the image's outermost pixels repeated."""
    top, left, h, w = box
    c, image_h, image_w = image.shape

    def kernel(t, a=-0.75):
        t = abs(t)
        if t <= 1:
            return (a + 2) * t**3 - (a + 3) * t**2 + 1
        return a * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0

    out = np.zeros((c, out_h, out_w))
    for i in range(out_h):
        for j in range(out_w):
            y = top + min(max((i + 0.5) * h / out_h - 0.5, 0), h - 1)
            x = left + min(max((j + 0.5) * w / out_w - 0.5, 0), w - 1)
            for row in range(math.floor(y) - 1, math.floor(y) + 3):
                for column in range(math.floor(x) - 1, math.floor(x) + 3):
                    pixel = image[:, min(max(row, 0), image_h - 1), min(max(column, 0), image_w - 1)]
                    out[:, i, j] += kernel(y - row) * kernel(x - column) * pixel
    return out


CASES = [
    ((0.1, 1.0), (0.75, 1.3333), None, True),
    ((0.1, 1.0), (0.75, 1.3333), None, False),
    ((0.3, 0.4), (1.0, 1.0), (5, 9), True),
    ((0.5, 1.0), (0.2, 5.0), 12, True),
    ((0.9, 1.0), (3.0, 4.0), None, True),  # fits hardly ever
]


@pytest.mark.parametrize(("area", "aspect", "size", "flip"), CASES)
@pytest.mark.parametrize("shape", [(6, 3, 8, 8), (1, 1, 8, 8), (3, 3, 32, 32), (3, 1, 7, 12), (1, 1, 1, 1)], ids=str)
def test_like_the_slow_loop(shape, area, aspect, size, flip):
    n, _, h, w = shape
    images = torch.randint(0, 256, shape, generator=seeded(1))
    out_h, out_w = size if isinstance(size, tuple) else (size or h, size or w)
    boxes, mirror = drawn(n, h, w, area, aspect, flip)
    slow = np.stack(
        [
            slow_bilinear(image[:, top : top + height, left : left + width], out_h, out_w)
            for image, (top, left, height, width) in zip(images.numpy(), boxes, strict=True)
        ]
    )
    slow = np.where(np.array(mirror)[:, None, None, None], slow[..., ::-1], slow)
    augment = ResizedCrop(area, aspect, size, flip)
    assert np.abs(augment(images.float(), seeded()).numpy() - slow).max() < 5e-3
    assert np.abs(augment(images.to(torch.uint8), seeded()).numpy() - slow).max() < 0.505, "rounded, not cut off"


@pytest.mark.parametrize("shape", [(4, 3, 8, 8), (2, 1, 12, 7)], ids=str)
def test_bicubic_like_the_slow_loop(shape):
    n, _, h, w = shape
    images = torch.randint(0, 256, shape, generator=seeded(1))
    boxes, _ = drawn(n, h, w, (0.1, 1.0), (0.75, 1.3333), False)
    slow = np.stack([slow_bicubic(image, box, h, w) for image, box in zip(images.numpy(), boxes, strict=True)])
    augment = ResizedCrop(flip=False, mode="bicubic")
    assert np.abs(augment(images.float(), seeded()).numpy() - slow).max() < 5e-3
    assert slow.min() < 0 or slow.max() > 255, "bicubic overshoots"
    assert np.abs(augment(images.to(torch.uint8), seeded()).numpy() - slow.clip(0, 255)).max() < 0.505


@pytest.mark.parametrize(("area", "aspect"), [case[:2] for case in CASES])
@pytest.mark.parametrize(("h", "w"), [(32, 32), (8, 8), (5, 40), (40, 5)])
def test_boxes(h, w, area, aspect):
    n = 300
    boxes = random_boxes(n, h, w, area, aspect, torch.device("cpu"), seeded())
    assert torch.cat(boxes, 1).tolist() == [[float(v) for v in box] for box in drawn(n, h, w, area, aspect, False)[0]]


def test_by_hand_nothing_fits():
    """Twice as wide as high, of the area of a square: the largest such box has half its rows, from the middle."""
    image = torch.arange(64, dtype=torch.uint8).view(1, 1, 8, 8)
    result = resized_crop(image, (1.0, 1.0), (2.0, 2.0), size=(4, 8), flip=False, generator=seeded())
    assert torch.equal(result, image[:, :, 2:6])


def test_by_hand_the_whole_image():
    image = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8, generator=seeded())
    assert torch.equal(ResizedCrop((1.0, 1.0), (1.0, 1.0), flip=False)(image), image)
    # of 1 × 3 pixels a square has side 1.7, rounded to 2, and does not fit; the largest is one pixel, in the middle
    row = torch.tensor([[[[1.0, 8.0, 3.0]]]])
    assert ResizedCrop((1.0, 1.0), (1.0, 1.0), size=(1, 4), flip=False)(row).tolist() == [[[[8.0] * 4]]]


def test_area_aspect_and_place_are_uniform():
    n, size = 20_000, 1000  # so large that rounding to whole pixels does not matter
    top, left, height, width = random_boxes(n, size, size, (0.1, 0.5), (0.75, 4 / 3), torch.device("cpu"), seeded())
    deciles = {
        "area": (height * width / size**2 - 0.1) / 0.4,
        "aspect": (width / height).log() / (2 * math.log(4 / 3)) + 0.5,
        "top": (top + 0.5) / (size - height + 1),
        "left": (left + 0.5) / (size - width + 1),
    }
    for name, values in deciles.items():
        counts = torch.histc(values, 10, 0, 1)
        assert (counts - n / 10).abs().max() < 5 * (n * 0.09) ** 0.5, name


@pytest.mark.parametrize(
    "options",
    [
        {"area": (0.0, 1.0)}, {"area": (0.5, 0.1)}, {"area": (0.5, 1.1)}, {"area": 0.5}, {"area": (0.1, 0.5, 1.0)},
        {"aspect": (0, 1)}, {"aspect": (2.0, 1.0)}, {"aspect": (0.5, math.inf)}, {"aspect": "wide"},
        {"size": 0}, {"size": (3,)}, {"size": (3, 1.5)}, {"size": "8"}, {"flip": None}, {"mode": "nearest"},
    ],
)  # fmt: skip
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ResizedCrop(**options)
