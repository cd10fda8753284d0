"""Images that all runs of a stack get by one launch: as by their formula, and as a run takes them for itself."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from equipoise.data import Split, Task
from equipoise.train import Recipe, Run
from equipoise.train.stacked.counters import Counters
from equipoise.train.stacked.images import MovedImages, are_only_moved

BATCH = 7
AUGMENTS = ["crop_flip(pad=4)", "crop_flip(pad=2, flip=False)", "crop_flip(pad=0)"]


def a_run(augment: str, channels: int, device: str, seed: int = 0, **options) -> Run:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(256, (29, channels, 32, 32), dtype=torch.uint8, generator=generator)
    split = Split(images, torch.arange(29) % 3)
    task = Task("noise", split, split, split, ("a", "b", "c"), "").to(torch.device(device))
    options = {"model": "cifar_resnet(depth=8)", "batch_size": BATCH, "augment": augment, "epochs": 1, **options}
    return Run(Recipe.make(options, {"name": "blobs"}, seed), task, torch.device(device))


class Trunk:
    """In place of the real one: fills the images pixel by pixel."""

    def __init__(self, runs: list[Run], channels: int) -> None:
        self.sources = [run.feed.images.cpu() for run in runs]
        self.labels = [run.task.train.labels.cpu() for run in runs]
        self.images, self.in_channels, self.device = BATCH, channels, runs[0].device
        self.images_in = torch.zeros(len(runs), BATCH, 32, 32, 4, dtype=torch.bfloat16, device=self.device)

    def move_images(
        self, of: Tensor, index: Tensor, corner: Tensor, mirrored: Tensor, levels: Tensor, labels: Tensor
    ) -> None:
        for run, (_, _, packed) in enumerate(of.tolist()):
            place, pad = packed % 2**32, packed >> 32
            labels[place] = self.labels[place][index[place].cpu()].to(self.device)
            for image in range(BATCH):
                pixels, (top, left) = self.sources[place][index[place, image]], corner[run, :, image, 0].tolist()
                framed = torch.zeros(len(pixels), 32 + 2 * pad, 32 + 2 * pad, dtype=torch.uint8)
                framed[:, pad : pad + 32, pad : pad + 32] = pixels
                seen = framed[:, top : top + 32, :]
                columns = [left + (31 - j if mirrored[run, image] else j) for j in range(32)]
                for c, level in enumerate(seen[:, :, columns].long()):
                    self.images_in[place, image, :, :, c] = levels[run, c].cpu()[level].to(self.device)


def filled(runs: list[Run], trunk: object) -> tuple[list[Tensor], Tensor]:
    """Labels of each run, and all images, of the second step."""
    place = {id(run): i for i, run in enumerate(runs)}
    counters = Counters(runs)
    moved = MovedImages(runs, place, trunk, counters.index)
    for run in runs:
        run.begin_epoch(0)
    for _ in range(2):
        counters.choose_samples()
        labels = [moved.begin(run).target for run in runs]
        moved.fill()
        counters.count([run.loss_sum for run in runs])
    return labels, trunk.images_in


@pytest.mark.parametrize("channels", [1, 3])
def test_a_run_gets_the_images_that_it_would_take_for_itself(channels):
    runs, alone = ([a_run(a, channels, "cpu", seed) for seed, a in enumerate(AUGMENTS)] for _ in range(2))
    labels, images = filled(runs, Trunk(runs, channels))
    for i, run in enumerate(alone):
        run.begin_epoch(0)
        for _ in range(2):
            (batch,) = run.parts()
            run.done += 1
        assert torch.equal(labels[i], batch.target)
        assert torch.equal(images[i, ..., :channels], batch.inputs.permute(0, 2, 3, 1).bfloat16())
        assert not images[i, ..., channels:].any()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: the kernel is CUDA's")
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_kernel_moves_images_as_the_formula_does(channels):
    from equipoise.train.stacked.trunk import Trunk as RealTrunk

    runs, others = ([a_run(a, channels, "cuda", seed) for seed, a in enumerate(AUGMENTS)] for _ in range(2))
    real = RealTrunk(8, channels, len(runs), BATCH, 1, torch.device("cuda"))
    labels, images = filled(runs, real)
    wanted_labels, wanted = filled(others, Trunk(others, channels))
    assert torch.equal(images, wanted)
    assert all(map(torch.equal, labels, wanted_labels))


@pytest.mark.parametrize(
    ("options", "whether"),
    [
        ({"augment": "crop_flip"}, True),
        ({"augment": "crop_flip", "mix": "mfw"}, True),
        ({"augment": "crop_flip", "mix": "mixup"}, False),
        ({"augment": "autoaugment"}, False),
    ],
)
def test_who_goes_this_way(options, whether):
    assert are_only_moved(a_run(channels=3, device="cpu", **options)) == whether


def test_images_that_lie_otherwise_go_the_usual_way():
    run = a_run("crop_flip", 3, "cpu")
    run.feed = SimpleNamespace(images=run.feed.images)
    assert not are_only_moved(run)
