"""Images that are only shifted and mirrored: those of all runs are gathered, moved and normalized by one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ...core import Batch
from ...data.augment.crop_flip import CropFlip, draw_moves
from ..feed import Resident
from ..loop import Run
from .trunk import Trunk

LEVELS = 256  # of a pixel


def are_only_moved(run: Run) -> bool:
    """Whether this run's images are uint8 on the device, and shifted and mirrored but not mixed."""
    mixes_images = run.mix is not None and run.mix.site == "input"
    if mixes_images or type(run.augment) is not CropFlip or not isinstance(run.feed, Resident):
        return False
    images, labels = run.feed.images, run.task.train.labels
    if not (isinstance(images, Tensor) and images.dtype == torch.uint8 and images.is_contiguous()):
        return False
    return labels.dtype == torch.int64 and labels.is_contiguous()


def _pixels(run: Run) -> Tensor:
    assert isinstance(run.feed, Resident) and isinstance(run.feed.images, Tensor), "see `are_only_moved`"
    return run.feed.images


class MovedImages:
    """Puts the images of `runs` where the trunk reads them; `place` says where each run is in the pack.

    `index` (run, image) of the whole pack says which images are next.
    """

    def __init__(self, runs: Sequence[Run], place: Mapping[int, int], trunk: Trunk, index: Tensor) -> None:
        self.trunk, self.runs, self.row = trunk, list(runs), {id(run): i for i, run in enumerate(runs)}
        self.place, self.index, self.labels = place, index, torch.zeros_like(index)
        device = trunk.device
        self.corner = torch.zeros(len(runs), 2, trunk.images, 1, dtype=torch.int64, device=device)
        self.mirrored = torch.zeros(len(runs), trunk.images, 1, dtype=torch.bool, device=device)
        self.levels = torch.stack([_normalized_levels(run, trunk.in_channels) for run in runs])
        of = [
            (_pixels(run).data_ptr(), run.task.train.labels.data_ptr(), place[id(run)] | run.augment.pad << 32)
            for run in runs
        ]
        self.of = torch.tensor(of, dtype=torch.int64, device=device)

    def begin(self, run: Run) -> Batch:
        """The run's next batch, whose images and labels come with `fill`: the same random numbers as without it."""
        i, place, augment = self.row[id(run)], self.place[id(run)], run.augment
        out = self.corner[i], self.mirrored[i]
        draw_moves(self.trunk.images, augment.pad, augment.flip, run.device, run.streams["augment"], out)
        inputs = self.trunk.images_in[place][..., : self.trunk.in_channels].permute(0, 3, 1, 2)
        return Batch(inputs, self.labels[place])

    def fill(self) -> None:
        """The images and labels of all."""
        self.trunk.move_images(self.of, self.index, self.corner, self.mirrored, self.levels, self.labels)


def _normalized_levels(run: Run, channels: int) -> Tensor:
    """What each level becomes as input of the network: bf16 (channel, level)."""
    grey = torch.arange(LEVELS, dtype=torch.uint8, device=run.device)
    inputs = run.inputs(grey[:, None, None, None].expand(LEVELS, channels, 1, 1))
    return inputs[:, :, 0, 0].T.to(torch.bfloat16).contiguous()
