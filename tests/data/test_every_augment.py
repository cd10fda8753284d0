"""What every augmentation keeps: its seed, the type and range of pixels, the input, and the device's pace."""

import pytest
import torch

from equipoise.core import Spec, cards

TEXTS = [
    *(card.name for card in cards("augment") if card.name != "none"),
    "rotation(degrees=180.0, flip=False)",
    "resized_crop(area=(0.5, 0.5), size=(9, 7), mode='bicubic')",
    "autoaugment(policy='imagenet', pad=0, area=(0.1, 1.0))",
    "autoaugment(cutout=6)",
]
SHAPES = [(6, 3, 32, 32), (1, 3, 32, 32), (5, 1, 8, 8), (1, 1, 8, 8), (3, 3, 20, 13), (2, 1, 1, 1), (0, 3, 8, 8)]
every = pytest.mark.parametrize("text", TEXTS)


def build(text):
    return Spec.parse(text).build("augment")


def seeded(seed=0, device="cpu"):
    return torch.Generator(device).manual_seed(seed)


def some_images(*shape, device="cpu"):
    return torch.randint(0, 256, shape, generator=seeded(9)).to(device, torch.uint8)


@every
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pixels_stay_pixels(text, shape):
    images = some_images(*shape)
    before = images.clone()
    result = build(text)(images, seeded())
    assert result.dtype == torch.uint8 and result.shape[:2] == images.shape[:2]
    assert "size=" in text or result.shape == images.shape
    assert torch.equal(images, before), "the input is left alone"


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_floats_stay_floats(text, dtype):
    if text.startswith("autoaugment"):
        pytest.skip("defined on grey levels")
    images = some_images(6, 3, 12, 12).to(dtype)
    result = build(text)(images, seeded())
    assert result.dtype == dtype
    as_bytes = build(text)(images.to(torch.uint8), seeded())
    overshoot = 2.0 if "bicubic" in text else 0.0  # only bytes are clamped
    inside = (result > overshoot) & (result < 255 - overshoot)
    assert (result.float() - as_bytes.float())[inside].abs().max() <= (1.5 if dtype == torch.bfloat16 else 0.501)


@every
def test_same_seed_same_result_other_seed_other_result(text):
    images, augment = some_images(32, 3, 8, 8), build(text)
    assert torch.equal(augment(images, seeded(1)), augment(images, seeded(1)))
    assert not torch.equal(augment(images, seeded(1)), augment(images, seeded(2)))
    torch.manual_seed(5)
    first = augment(images)
    torch.manual_seed(5)
    assert torch.equal(augment(images), first), "without a generator, PyTorch's global one is used"


@every
def test_global_generator_is_left_alone(text):
    before = torch.get_rng_state()
    build(text)(some_images(8, 3, 8, 8), seeded())
    assert torch.equal(torch.get_rng_state(), before)


@every
def test_each_sample_is_changed_in_its_own_way(text):
    image = some_images(1, 3, 32, 32).expand(64, 3, 32, 32)
    assert len(build(text)(image, seeded()).unique(dim=0)) > 15


@every
def test_any_memory_format(text):
    images = some_images(8, 3, 16, 16)
    channels_last = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(build(text)(channels_last, seeded()), build(text)(images, seeded()))


@every
@pytest.mark.parametrize("channels", [1, 3])
def test_nothing_is_read_back_from_the_device(text, channels):
    """Meta tensors have no values: any look at one fails, and so does a helper tensor made elsewhere."""
    images = torch.empty(8, channels, 32, 32, dtype=torch.uint8, device="meta")
    assert build(text)(images).dtype == torch.uint8


@every
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_no_synchronisation_on_a_gpu(text, never_waiting):
    images, augment, generator = some_images(8, 3, 32, 32, device="cuda"), build(text), seeded(device="cuda")
    augment(images, generator)  # AutoAugment copies its table on first use
    with never_waiting():
        augment(images, generator)


@every
def test_text_and_repr(text):
    spec = Spec.parse(text).resolved("augment")
    inner = str(spec).partition("(")[2]
    assert repr(build(text)).partition("(")[2] == inner


@every
def test_bad_shape(text):
    with pytest.raises(ValueError, match=r"\(N, c, h, w\), got \(3, 8, 8\)"):
        build(text)(torch.zeros(3, 8, 8, dtype=torch.uint8))


@pytest.mark.parametrize("card", [card for card in cards("augment") if card.neutral], ids=lambda card: card.name)
def test_neutral_changes_nothing(card):
    images = some_images(6, 3, 20, 13)
    assert torch.equal(Spec(card.name, tuple(card.neutral.items())).build("augment")(images), images)
