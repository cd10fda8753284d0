"""AutoAugment's kernel has the numbers of the plain way, to the bit: on a GPU, and its source compiled for the CPU."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from equipoise.data import AutoAugment, autoaugment, crop_flip
from equipoise.data.augment import _on_gpu
from equipoise.data.augment._operations import OPERATIONS
from equipoise.data.augment.autoaugment import draw_operations, operated
from equipoise.data.augment.crop_flip import draw_moves, moved

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


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    """The kernel for three channels of 32 × 32, as a function on tensors of the CPU."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    source, library = (
        Path(__file__).parent / "programs" / "operations_on_cpu.cpp",
        tmp_path_factory.mktemp("k") / "k.so",
    )
    options = ["-std=c++20", "-O1", "-ffp-contract=off", "-pthread", "-shared", "-fPIC", f"-I{_on_gpu.SOURCE.parent}"]
    built = subprocess.run([compiler, *options, source, "-o", library], capture_output=True, text=True)
    if "std=c++20" in built.stderr or "barrier" in built.stderr:
        pytest.skip("needs a g++ that knows C++20")
    assert built.returncode == 0, built.stderr
    kernel = ctypes.CDLL(str(library)).operate_and_move_on_cpu

    def call(images, operation, strength, pad, corner, mirrored):
        out = torch.empty_like(images)
        given = [t if t is None else t.contiguous() for t in (images, operation, strength, corner, mirrored)]
        kernel(*(ctypes.c_void_p(t if t is None else t.data_ptr()) for t in (*given, out)), pad, len(images))
        return out

    return call


@pytest.mark.parametrize(("policy", "pad", "flip"), [("cifar10", 4, True), ("imagenet", 2, False)])
def test_the_kernels_source_on_the_cpu(on_cpu, policy, pad, flip):
    images, generator = photographs(48, 3, 32), torch.Generator().manual_seed(7)
    operation, strength = draw_operations(len(images), policy, images.device, generator)
    moves = draw_moves(len(images), pad, flip, images.device, generator)
    result = on_cpu(images, operation, strength, pad, *moves)
    expected = moved(operated(images, operation, strength), pad, *moves)
    turned = (operation == OPERATIONS.index("Rotate")).any(1)  # its sines are another library's
    assert torch.equal(result[~turned], expected[~turned])
    assert (result[turned] != expected[turned]).float().mean() < 0.005
    assert (~turned).sum() > 24 and (result != images).float().mean() > 0.1


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
