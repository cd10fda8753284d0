"""What the stacked trunk launches in a step, without a GPU: launches are written down instead."""

from contextlib import nullcontext

import pytest
import torch

from equipoise.train.stacked import trunk as trunk_file
from equipoise.train.stacked.descent import DescentTable
from equipoise.train.stacked.trunk import Trunk


class Written:
    """In place of a compiled program."""

    def __init__(self, source, names, device):
        self.compiled, self.launched, self.early = set(names), [], []

    def launch(self, name, grid, threads, *arguments, early=False):
        self.launched.append(name)
        self.early.append(early)
        assert all(1 <= size < 2**16 for size in grid[1:]) and grid[0] >= 1 and 32 <= threads <= 1024


class Stream:
    def __init__(self, device=None): ...

    def wait_stream(self, other): ...


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(trunk_file, "Program", Written)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())


def step(trunk, *, mixed):
    trunk.move_images(*(torch.zeros(trunk.runs, 2) for _ in range(6)))
    trunk.arrange_weights()
    maps = [trunk.stem_forward()]
    for number in range(3):
        maps.append(trunk.stage_forward(number, maps[-1]))
    trunk.move_averages()
    trunk.pool()
    if mixed:
        trunk.end_backward(2, maps[-1])
    else:
        trunk.pooled_backward()
    for number in (2, 1, 0):
        trunk.stage_backward(number, maps[number], into=torch.empty_like(maps[number]) if mixed else None)
        if mixed:
            trunk.end_backward(number - 1, maps[number])
    trunk.stem_backward()
    trunk.finish()
    trunk.move_weights(DescentTable())


@pytest.mark.parametrize("depth", [8, 32])
@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_launched_was_compiled(no_gpu, depth, channels):
    trunk = Trunk(depth, channels, 2, 5, 3, torch.device("cpu"))
    step(trunk, mixed=False)
    step(trunk, mixed=True)
    assert set(trunk.program.launched) == trunk.program.compiled


def test_launches_of_a_step_of_resnet32(no_gpu):
    """The images; the weights; a convolution and its norm 31 times and 16 ends of blocks; the averages; the features;
    the last block's gradient; 31 times a norm, a gradient of weights and its sum, 30 times that of the input; γ and β;
    the new weights."""
    trunk = Trunk(32, 3, 8, 2, 1, torch.device("cpu"))
    step(trunk, mixed=False)
    assert len(trunk.program.launched) == 1 + 1 + 2 * 31 + 16 + 1 + 1 + 1 + 3 * 31 + 30 + 1 + 1


def test_what_comes_after_others_on_its_stream_does_not_start_early(no_gpu):
    """The images, the weights, the first layer of each part, the last gradient, γ and β; gradients of weights, whose
    stream waits for the other before each of them."""
    trunk = Trunk(8, 3, 2, 2, 1, torch.device("cpu"))
    step(trunk, mixed=False)
    late = [name for name, early in zip(trunk.program.launched, trunk.program.early, strict=True) if not early]
    assert [name.split("<")[0] for name in late if not name.startswith("weight_gradient")] == [
        "move_images", "arrange_weights", *4 * ["convolution"], "gradient_of_end", "add_affine"
    ]  # fmt: skip
    assert sum(name.startswith("weight_gradient") for name in late) == len(trunk.layers)


def test_memory_has_its_type_whatever_the_default_is(no_gpu):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        trunk = Trunk(8, 3, 2, 2, 1, torch.device("cpu"))
    finally:
        torch.set_default_dtype(before)
    floats = [
        trunk.parameters,
        trunk.rate,
        trunk.sums,
        trunk.parts,
        *trunk.moving.values(),
        *trunk.per_channel.values(),
    ]
    assert {t.dtype for t in [*floats, *(layer.epsilon for layer in trunk.layers)]} == {torch.float32}
