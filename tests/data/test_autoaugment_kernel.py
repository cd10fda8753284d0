"""AutoAugment's kernel on a GPU has the numbers of the plain way, to the bit; who may not use it does not."""

import sys

import pytest
import torch

from equipoise.data import AutoAugment, autoaugment, crop_flip
from equipoise.data.augment import _on_gpu
from equipoise.data.augment._operations import OPERATIONS
from equipoise.data.augment.autoaugment import operated

from .test_autoaugment import STRENGTHS, photographs

gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: the kernel is CUDA's"),
]


def on_gpu(name: str, c: int, size: int):
    """Photographs for each strength of an operation, twice: as the first and as the second of two."""
    images = photographs(6, c, size).repeat(2 * len(STRENGTHS[name]), 1, 1, 1)
    strength = torch.tensor(STRENGTHS[name]).repeat_interleave(6).repeat(2)
    operation = torch.full((len(images), 2), -1)
    half = len(images) // 2
    operation[:half, 0] = operation[half:, 1] = OPERATIONS.index(name)
    return [t.cuda() for t in (images, operation, strength[:, None].expand(-1, 2))]


def unmoved(images: torch.Tensor) -> tuple:
    return 0, torch.zeros(2, len(images), 1, dtype=torch.int64, device=images.device), None


@pytest.mark.parametrize(("c", "size"), [(3, 32), (1, 16), (3, 64)])
@pytest.mark.parametrize("name", OPERATIONS)
class TestOperation:
    pytestmark = gpu

    def test_is_that_of_the_plain_way(self, name, c, size):
        images, operation, strength = on_gpu(name, c, size)
        assert _on_gpu.suits(images, strength)
        result = _on_gpu.operated_and_moved(images, operation, strength, *unmoved(images))
        assert torch.equal(result, operated(images, operation, strength))


@pytest.mark.parametrize("options", [{}, {"policy": "imagenet", "pad": 2, "flip": False}, {"pad": 0}])
class TestAugmentation:
    pytestmark = gpu

    def test_is_that_of_the_plain_way(self, options, monkeypatch):
        images, augment = photographs(500, 3, 32).cuda(), AutoAugment(**options)
        results = []
        for _ in range(2):
            generator = torch.Generator("cuda").manual_seed(3)
            results.append(augment(images, generator))
            monkeypatch.setattr(sys.modules[AutoAugment.__module__], "suits", lambda images, strength: False)
        assert torch.equal(*results)
        assert (results[0] != images).float().mean() > 0.1


@pytest.mark.parametrize(
    "images",
    [
        torch.zeros(2, 3, 32, 32, dtype=torch.uint8),
        torch.zeros(2, 3, 28, 28, dtype=torch.uint8),
        torch.zeros(0, 3, 32, 32, dtype=torch.uint8),
    ],
    ids=["on the CPU", "not 2^k pixels", "none"],
)
def test_others_go_the_plain_way(images):
    device = "cuda" if torch.cuda.is_available() and len(images) != 2 else "cpu"
    assert not _on_gpu.suits(images.to(device), torch.zeros(len(images), 2, device=device))


def test_both_ways_draw_alike():
    images = photographs(40, 3, 32)
    generator, again = (torch.Generator().manual_seed(5) for _ in range(2))
    expected = crop_flip(autoaugment(images, generator=generator), generator=generator)
    assert torch.equal(AutoAugment()(images, again), expected)
    assert torch.equal(generator.get_state(), again.get_state())
