"""AutoAugment: each operation against its definition and against Pillow, and the policies against a slow loop."""

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError, Spec
from equipoise.data import AutoAugment, autoaugment, crop_flip, resized_crop
from equipoise.data.augment._operations import FILL, OPERATIONS, operate
from equipoise.data.augment.autoaugment import policy_table

GEOMETRIC = OPERATIONS[:5]
COLOURS = OPERATIONS[5:]
# strengths to try, the edges of the range and beyond included
STRENGTHS = {
    "ShearX": (-0.3, -0.03, 0.0, 0.27), "ShearY": (-0.3, -0.03, 0.0, 0.27),
    "TranslateX": (-0.3, -0.03, 0.0, 0.28125), "TranslateY": (-0.3, -0.03, 0.0, 0.28125),
    "Rotate": (-27.0, 0.0, 6.0, 30.0), "AutoContrast": (0.0,), "Invert": (0.0,), "Equalize": (0.0,),
    "Solarize": (0.0, 51.2, 128.0, 204.8, 256.0), "Posterize": (8.0, 7.6, 5.2, 4.0, 1.0),
    "Contrast": (0.1, 0.64, 1.0, 1.9), "Color": (0.0, 0.1, 0.64, 1.0, 1.9), "Brightness": (0.1, 0.64, 1.0, 1.9),
    "Sharpness": (0.0, 0.1, 0.64, 1.0, 1.9),
}  # fmt: skip


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def photographs(n, c, size, seed=0):
    """Smooth pictures with noise: a random grey range for each channel, one picture flat, one of two levels."""
    rng = np.random.default_rng(seed)
    i, j = np.mgrid[:size, :size] / size
    wave = np.sin(6 * i[None, None] * rng.uniform(0.5, 2, (n, c, 1, 1)) + 4 * j + rng.uniform(0, 6, (n, c, 1, 1)))
    low, high = rng.uniform(0, 90, (n, c, 1, 1)), rng.uniform(120, 255, (n, c, 1, 1))
    pictures = low + (high - low) * (wave + 1) / 2 + rng.normal(0, 6, (n, c, size, size))
    pictures[0] = 77
    if n > 1:
        pictures[1] = np.where(pictures[1] > 120, 200, 31)
    return torch.from_numpy(pictures.clip(0, 255).astype(np.uint8))


# -- definitions, image by image: (c, h, w) whole numbers, strength -> (c, h, w) ---------------------------------------


def slow_warp(image, source):
    """`source` gives, for the middle (x, y) of a pixel, where in the image to read."""
    c, h, w = image.shape
    out = np.full((c, h, w), FILL)
    for i in range(h):
        for j in range(w):
            x, y = source(j + 0.5, i + 0.5)
            column, row = int(np.floor(x)), int(np.floor(y))
            if 0 <= row < h and 0 <= column < w:
                out[:, i, j] = image[:, row, column]
    return out


def slow_rotate(image, degrees):
    _, h, w = image.shape
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return slow_warp(
        image,
        lambda x, y: (
            cos * (x - w / 2) - sin * (y - h / 2) + w / 2,
            sin * (x - w / 2) + cos * (y - h / 2) + h / 2,
        ),
    )


def slow_autocontrast(image, _):
    out = image.copy()
    for k, channel in enumerate(image):
        low, high = channel.min(), channel.max()
        if high > low:
            out[k] = (channel - low) * 255 // (high - low)
    return out


def slow_equalize(image, _):
    out = image.copy()
    for k, channel in enumerate(image):
        step = int((channel < channel.max()).sum()) // 255
        if step:
            for i, j in np.ndindex(*channel.shape):
                out[k, i, j] = min(255, (int((channel < channel[i, j]).sum()) + step // 2) // step)
    return out


def slow_blend(base, image, factor):
    """In single precision, as Pillow does: 1.18 · 50 is 58.999996 there, cut off to 58."""
    base, image = np.float32(base), image.astype(np.float32)
    return (base + np.float32(factor) * (image - base)).clip(0, 255).astype(int)


def slow_grey(image):
    if len(image) == 1:
        return image[0]
    weights = [round(weight * 65536) / 65536 for weight in (0.299, 0.587, 0.114)]
    return np.floor(sum(weight * channel for weight, channel in zip(weights, image, strict=True)) + 0.5)


def slow_smooth(image):
    out = image.copy()
    for i in range(1, image.shape[1] - 1):
        for j in range(1, image.shape[2] - 1):
            around = image[:, i - 1 : i + 2, j - 1 : j + 2].sum((1, 2))
            out[:, i, j] = np.rint((around + 4 * image[:, i, j]) / 13)
    return out


SLOW = {
    "ShearX": lambda image, s: slow_warp(image, lambda x, y: (x + s * y, y)),
    "ShearY": lambda image, s: slow_warp(image, lambda x, y: (x, y + s * x)),
    "TranslateX": lambda image, s: slow_warp(image, lambda x, y: (x + s * image.shape[2], y)),
    "TranslateY": lambda image, s: slow_warp(image, lambda x, y: (x, y + s * image.shape[1])),
    "Rotate": slow_rotate,
    "AutoContrast": slow_autocontrast,
    "Invert": lambda image, _: 255 - image,
    "Equalize": slow_equalize,
    "Solarize": lambda image, s: np.where(image < s, image, 255 - image),
    "Posterize": lambda image, s: image // 2 ** int(8 - s) * 2 ** int(8 - s),
    "Contrast": lambda image, s: slow_blend(np.floor(slow_grey(image).mean() + 0.5), image, s),
    "Color": lambda image, s: slow_blend(slow_grey(image), image, s),
    "Brightness": lambda image, s: slow_blend(0, image, s),
    "Sharpness": lambda image, s: slow_blend(slow_smooth(image), image, s),
}


def pillow(name, image, strength):
    """The operation on one uint8 image (c, h, w) with Pillow, as the authors' code calls it."""
    from PIL import Image, ImageEnhance, ImageOps

    c, h, w = image.shape
    picture = Image.fromarray(image[0] if c == 1 else image.transpose(1, 2, 0))
    fill = (FILL,) * c if c > 1 else FILL

    def affine(*matrix):
        return picture.transform((w, h), Image.Transform.AFFINE, matrix, fillcolor=fill)

    result = {
        "ShearX": lambda: affine(1, strength, 0, 0, 1, 0),
        "ShearY": lambda: affine(1, 0, 0, strength, 1, 0),
        "TranslateX": lambda: affine(1, 0, strength * w, 0, 1, 0),
        "TranslateY": lambda: affine(1, 0, 0, 0, 1, strength * h),
        "Rotate": lambda: picture.rotate(strength, fillcolor=fill),
        "AutoContrast": lambda: ImageOps.autocontrast(picture),
        "Invert": lambda: ImageOps.invert(picture),
        "Equalize": lambda: ImageOps.equalize(picture),
        "Solarize": lambda: ImageOps.solarize(picture, strength),
        "Posterize": lambda: ImageOps.posterize(picture, int(np.ceil(strength))),
        "Contrast": lambda: ImageEnhance.Contrast(picture).enhance(strength),
        "Color": lambda: ImageEnhance.Color(picture).enhance(strength),
        "Brightness": lambda: ImageEnhance.Brightness(picture).enhance(strength),
        "Sharpness": lambda: ImageEnhance.Sharpness(picture).enhance(strength),
    }[name]()
    pixels = np.asarray(result).astype(int)
    return pixels[None] if c == 1 else pixels.transpose(2, 0, 1)


def batch_of(name, c, size):
    """Images, one for each strength to try and two more, with their operation and strength."""
    strengths = [s for s in STRENGTHS[name] for _ in range(3)]
    images = photographs(len(strengths), c, size)
    return images, torch.full((len(images),), OPERATIONS.index(name)), torch.tensor(strengths)


shapes = pytest.mark.parametrize(("c", "size"), [(1, 8), (3, 8), (1, 32), (3, 32)])


@shapes
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_like_its_definition(name, c, size):
    images, operation, strength = batch_of(name, c, size)
    result = operate(images, operation, strength)
    assert result.dtype == torch.uint8
    slow = np.stack([SLOW[name](i.numpy().astype(int), s) for i, s in zip(images, strength.tolist(), strict=True)])
    assert np.array_equal(result.numpy(), slow)


@shapes
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_like_pillow(name, c, size):
    pytest.importorskip("PIL")
    images, operation, strength = batch_of(name, c, size)
    result = operate(images, operation, strength).numpy().astype(int)
    theirs = np.stack([pillow(name, i.numpy(), s) for i, s in zip(images, strength.tolist(), strict=True)])
    if (
        name in GEOMETRIC
    ):  # Pillow counts in 1/65536 of a pixel: where two pixels are equally near, it may take the other
        assert (result != theirs).mean() < 0.005
    else:
        assert np.abs(result - theirs).max() <= 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_does_something(name):
    images, operation, strength = batch_of(name, 3, 32)
    assert (operate(images, operation, strength) != images).float().mean() > 0.1


@pytest.mark.parametrize("c", [1, 3])
def test_each_image_has_its_own_operation(c):
    images = photographs(140, c, 32)
    operation = torch.arange(140) % 15 - 1
    strength = torch.tensor([STRENGTHS[OPERATIONS[k]][-1] if k >= 0 else 3.0 for k in operation.tolist()])
    alone = [operate(images[n : n + 1], operation[n : n + 1], strength[n : n + 1]) for n in range(140)]
    together = operate(images, operation, strength)
    assert torch.equal(together, torch.cat(alone))
    assert torch.equal(together[operation == -1], images[operation == -1]), "no operation, no change"


def test_color_is_identity_on_grey_images():
    images, operation, strength = batch_of("Color", 1, 8)
    assert torch.equal(operate(images, operation, strength), images)


def test_equalize_by_hand():
    """512 pixels of 0, 256 of 10, 256 of 20: step = 768 // 255 = 3, so 0 -> 1 // 3, 10 -> 513 // 3, 20 -> 769 // 3."""
    image = torch.tensor([0] * 512 + [10] * 256 + [20] * 256, dtype=torch.uint8).view(1, 1, 32, 32)
    result = operate(image, torch.tensor([OPERATIONS.index("Equalize")]), torch.zeros(1)).flatten()
    assert result[[0, 512, 768]].tolist() == [0, 171, 255]  # 256 is cut to 255


@pytest.mark.parametrize(
    ("policy", "row", "expected"),
    [
        # sub-policies as printed in the paper's appendix; strength by hand from level / 10 of the way through the range
        ("cifar10", 0, [("Invert", 0.1, 0.0), ("Contrast", 0.2, 0.1 + 0.6 * 1.8)]),
        ("cifar10", 1, [("Rotate", 0.7, 6.0), ("TranslateX", 0.3, 9 / 32)]),
        ("cifar10", 3, [("ShearY", 0.5, 0.24), ("TranslateY", 0.7, 9 / 32)]),
        ("cifar10", 5, [("ShearY", 0.2, 0.21), ("Posterize", 0.3, 5.2)]),
        ("cifar10", 14, [("Solarize", 0.5, 204.8), ("Invert", 0.0, 0.0)]),
        ("cifar10", 19, [("Brightness", 0.1, 0.64), ("Color", 0.7, 0.1)]),
        ("cifar10", 24, [("TranslateY", 0.7, 9 / 32), ("AutoContrast", 0.9, 0.0)]),
        ("imagenet", 0, [("Posterize", 0.4, 4.8), ("Rotate", 0.6, 27.0)]),
        ("imagenet", 8, [("Rotate", 0.2, 9.0), ("Solarize", 0.6, 51.2)]),
        ("imagenet", 12, [("Equalize", 0.0, 0.0), ("Equalize", 0.8, 0.0)]),
        ("imagenet", 17, [("Sharpness", 0.4, 1.36), ("Invert", 0.6, 0.0)]),
        ("imagenet", 18, [("ShearX", 0.6, 0.15), ("Equalize", 1.0, 0.0)]),
        ("imagenet", 24, [("Equalize", 0.8, 0.0), ("Equalize", 0.6, 0.0)]),
    ],
)
def test_policies(policy, row, expected):
    table = policy_table(policy, torch.device("cpu"))
    assert table.shape == (25, 2, 3)
    for found, (name, probability, strength) in zip(table[row].tolist(), expected, strict=True):
        assert OPERATIONS[int(found[0])] == name
        assert found[1:] == pytest.approx([probability, strength], rel=1e-6)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("cifar10", {"Equalize": 9, "AutoContrast": 7, "TranslateY": 5, "Sharpness": 5, "Color": 5, "Brightness": 4,
                     "Solarize": 4, "Invert": 3, "TranslateX": 2, "ShearY": 2, "Contrast": 2, "Rotate": 1,
                     "Posterize": 1}),
        ("imagenet", {"Equalize": 17, "Color": 6, "Solarize": 7, "Rotate": 6, "Posterize": 5, "Invert": 3,
                      "Contrast": 2, "AutoContrast": 2, "Sharpness": 1, "ShearX": 1}),
    ],
)  # fmt: skip
def test_how_often_a_policy_has_an_operation(policy, expected):
    names = [OPERATIONS[int(k)] for k in policy_table(policy, torch.device("cpu"))[..., 0].flatten()]
    assert {name: names.count(name) for name in set(names)} == expected


@pytest.mark.parametrize("policy", ["cifar10", "imagenet"])
@pytest.mark.parametrize(("n", "c", "size"), [(60, 3, 16), (60, 1, 8), (1, 3, 32)])
def test_like_the_slow_loop(policy, n, c, size):
    """Image by image: draw a sub-policy, do its two operations in order, each by its definition."""
    images = photographs(n, c, size)
    generator = seeded()
    rows = torch.randint(25, (n,), generator=generator)
    happens, sign = torch.rand(2, n, 2, generator=generator)
    table = policy_table(policy, torch.device("cpu")).tolist()
    result = autoaugment(images, policy, generator=seeded()).numpy()
    for s in range(n):
        image = images[s].numpy().astype(int)
        for slot, (index, probability, strength) in enumerate(table[rows[s]]):
            name = OPERATIONS[int(index)]
            if happens[s, slot] < probability:
                image = SLOW[name](image, -strength if name in GEOMETRIC and sign[s, slot] < 0.5 else strength)
        assert np.array_equal(result[s], image), table[rows[s]]


def test_crops_before_and_after():
    images = photographs(16, 3, 32)
    generator = seeded()
    boxes = resized_crop(images, (0.1, 1.0), flip=False, generator=generator)
    expected = crop_flip(autoaugment(boxes, "imagenet", generator=generator), 2, True, generator=generator)
    assert torch.equal(AutoAugment("imagenet", pad=2, area=(0.1, 1.0))(images, seeded()), expected)
    generator = seeded()
    expected = crop_flip(autoaugment(images, generator=generator), 4, False, generator=generator)
    assert torch.equal(AutoAugment(flip=False)(images, seeded()), expected)


@pytest.mark.parametrize(
    "options", [{"policy": "svhn"}, {"pad": -1}, {"pad": 1.0}, {"area": 0.5}, {"area": (0.5, 1.5)}, {"flip": 0}]
)
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        AutoAugment(**options)


def test_unknown_policy_as_text():
    with pytest.raises(EquipoiseError, match="one of 'cifar10', 'imagenet', not 'cifar'"):
        Spec.parse("autoaugment(policy='cifar')").build("augment")


@pytest.mark.parametrize("images", [torch.zeros(2, 3, 8, 8), torch.zeros(2, 4, 8, 8, dtype=torch.uint8)], ids=str)
def test_bad_images(images):
    with pytest.raises(ValueError, match="uint8 images of 1 or 3 channels, got"):
        AutoAugment()(images)
