"""Augmentation against a slow loop over samples, and normalisation."""

import numpy as np
import pytest
import torch

from equipoise.core import Spec
from equipoise.data import CropFlip, NoAugment, crop_flip, load_task, normalize


def slow_crop_flip(images, pad, flip, generator):
    """Image by image and pixel by pixel, in numpy; draws the same random numbers in the same order."""
    n, c, h, w = images.shape
    offsets = torch.randint(2 * pad + 1, (2, n, 1), generator=generator)
    mirror = torch.rand(n, 1, generator=generator) < 0.5 if flip else torch.zeros(n, 1, dtype=torch.bool)
    out = np.zeros(images.shape, images.numpy().dtype)
    for s in range(n):
        top, left = int(offsets[0, s, 0]) - pad, int(offsets[1, s, 0]) - pad
        crop = np.zeros((c, h, w), out.dtype)
        for i in range(h):
            for j in range(w):
                if 0 <= i + top < h and 0 <= j + left < w:
                    crop[:, i, j] = images[s, :, i + top, j + left].numpy()
        out[s] = crop[:, :, ::-1] if mirror[s, 0] else crop
    return out


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("pad", "flip"), [(0, False), (0, True), (1, False), (2, True), (9, True)])
@pytest.mark.parametrize("shape", [(6, 3, 5, 7), (1, 1, 8, 8), (0, 3, 4, 4)])
def test_like_the_slow_loop(shape, pad, flip, dtype):
    images = torch.randint(1, 256, shape, generator=seeded(1)).to(dtype)
    result = CropFlip(pad, flip)(images, seeded())
    assert result.dtype == dtype and result.shape == images.shape
    exact = images.float() if dtype == torch.bfloat16 else images
    assert np.array_equal(result.to(exact.dtype).numpy(), slow_crop_flip(exact, pad, flip, seeded()))


def test_by_hand():
    """A frame of one zero: the image 1 2 / 3 4 can only become one of nine crops."""
    image = torch.tensor([[[[1, 2], [3, 4]]]])
    seen = {tuple(crop_flip(image, 1, False, generator=seeded(s)).flatten().tolist()) for s in range(200)}
    assert seen == {
        (0, 0, 0, 1), (0, 0, 1, 2), (0, 0, 2, 0),
        (0, 1, 0, 3), (1, 2, 3, 4), (2, 0, 4, 0),
        (0, 3, 0, 0), (3, 4, 0, 0), (4, 0, 0, 0),
    }  # fmt: skip


def test_each_sample_has_its_own_offset_and_mirror():
    """Every offset and mirror comes up equally often; 5 standard deviations of a count are allowed."""
    n, pad = 20_000, 1
    image = torch.arange(1, 10).view(1, 1, 3, 3).expand(n, 1, 3, 3)
    kinds, counts = crop_flip(image, pad, True, generator=seeded()).flatten(1).unique(dim=0, return_counts=True)
    assert len(kinds) == 9 * 2
    expected = n / 18
    assert (counts - expected).abs().max() < 5 * expected**0.5


def test_input_is_left_alone():
    images = torch.randint(0, 256, (8, 3, 8, 8), dtype=torch.uint8)
    before = images.clone()
    CropFlip()(images)
    assert torch.equal(images, before)


def test_nothing_is_read_back_from_the_device():
    """Meta tensors have no values: any look at one fails, and so does a helper tensor made elsewhere."""
    images = torch.empty(8, 3, 32, 32, dtype=torch.uint8, device="meta")
    assert CropFlip()(images).shape == images.shape
    mean = torch.empty(3, device="meta")
    assert normalize(images, mean, mean).dtype == torch.float32


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_no_synchronisation_on_a_gpu(never_waiting):
    images = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8, device="cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    mean = torch.full((3,), 0.5, device="cuda")
    with never_waiting():
        normalize(CropFlip()(images, generator), mean, mean)


def test_no_augment():
    images = torch.rand(2, 3, 4, 4)
    assert NoAugment()(images, seeded()) is images


def test_text_and_repr():
    augment = Spec.parse("crop_flip(pad=2, flip=False)").build("augment")
    assert (augment.pad, augment.flip) == (2, False)
    assert repr(augment) == "CropFlip(pad=2, flip=False)"
    assert repr(Spec.parse("none").build("augment")) == "NoAugment()"


@pytest.mark.parametrize("options", [{"pad": -1}, {"pad": 1.5}, {"flip": 2}, {"flip": "yes"}])
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        CropFlip(**options)


def test_bad_shape():
    with pytest.raises(ValueError, match=r"\(N, c, h, w\), got \(3, 8, 8\)"):
        CropFlip()(torch.zeros(3, 8, 8))


def test_normalize_by_hand():
    # (51 / 255 - 0.5) / 0.25 = (0.2 - 0.5) / 0.25 = -1.2, and (255 / 255 - 0) / 2 = 0.5
    images = torch.tensor([51, 255], dtype=torch.uint8).view(1, 2, 1, 1)
    result = normalize(images, torch.tensor([0.5, 0.0]), torch.tensor([0.25, 2.0]))
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.flatten(), torch.tensor([-1.2, 0.5]))


def test_normalized_training_images_have_mean_0_and_std_1():
    task = load_task("digits")
    pixels = normalize(task.train.images, *task.mean_std)
    assert abs(float(pixels.mean())) < 1e-4 and abs(float(pixels.std()) - 1) < 1e-4


@pytest.mark.parametrize(
    "shape", [(3, 3, 7, 5), (1, 1, 1, 1), (2, 4, 9, 11), (2, 6, 5, 5), (40, 3, 31, 33), (0, 3, 4, 4)]
)
@pytest.mark.parametrize("lie", ["planes", "interleaved", "every second column"])
def test_normalize_rounds_as_three_steps_of_pytorch_do_however_images_lie(shape, lie):
    generator = torch.Generator().manual_seed(0)
    n, c, h, w = shape
    wide = torch.randint(0, 256, (n, c, h, 2 * w), generator=generator, dtype=torch.uint8)
    layout = torch.channels_last if lie == "interleaved" else torch.contiguous_format
    images = wide[..., ::2] if lie == "every second column" else wide[..., ::2].contiguous(memory_format=layout)
    mean, std = torch.rand(c, generator=generator), torch.rand(c, generator=generator) + 0.1
    expected = images.float().div(255).sub(mean[:, None, None]).div(std[:, None, None])
    result = normalize(images, mean, std)
    torch.testing.assert_close(result, expected, rtol=0, atol=0)
    assert result.is_contiguous(memory_format=layout)


def test_normalize_refuses_floats():
    with pytest.raises(ValueError, match=r"uint8 .* got torch.float32"):
        normalize(torch.zeros(1, 1, 2, 2), torch.zeros(1), torch.ones(1))
