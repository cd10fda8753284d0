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
    images = run.feed.images
    return isinstance(images, Tensor) and images.dtype == torch.uint8 and images.is_contiguous()


def _pixels(run: Run) -> Tensor:
    assert isinstance(run.feed, Resident) and isinstance(run.feed.images, Tensor), "see `are_only_moved`"
    return run.feed.images


class MovedImages:
    """Puts the images of `runs` where the trunk reads them; `place` says where each run is in the pack."""

    def __init__(self, runs: Sequence[Run], place: Mapping[int, int], trunk: Trunk) -> None:
        self.trunk, self.row = trunk, {id(run): i for i, run in enumerate(runs)}
        self.place = place
        shape, device = (len(runs), trunk.images), trunk.device
        self.index = torch.zeros(shape, dtype=torch.int64, device=device)
        self.corner = torch.zeros(len(runs), 2, trunk.images, dtype=torch.int64, device=device)
        self.mirrored = torch.zeros(shape, dtype=torch.bool, device=device)
        self.levels = torch.stack([_normalized_levels(run, trunk.in_channels) for run in runs])
        of = [(_pixels(run).data_ptr(), place[id(run)] | run.augment.pad << 32) for run in runs]
        self.of = torch.tensor(of, dtype=torch.int64, device=device)

    def __contains__(self, run: Run) -> bool:
        return id(run) in self.row

    def begin(self, run: Run) -> Batch:
        """The run's next batch, whose images come with `fill`: the same random numbers as without it."""
        i, (index, _) = self.row[id(run)], run.next_index()
        corner, mirrored = draw_moves(len(index), run.augment.pad, run.augment.flip, run.device, run.streams["augment"])
        self.index[i].copy_(index)
        self.corner[i].copy_(corner[..., 0])
        if mirrored is not None:
            self.mirrored[i].copy_(mirrored[:, 0])
        inputs = self.trunk.images_in[self.place[id(run)]][..., : self.trunk.in_channels].permute(0, 3, 1, 2)
        return Batch(inputs, run.task.train.labels[index])

    def fill(self) -> None:
        """The images of all."""
        self.trunk.move_images(self.of, self.index, self.corner, self.mirrored, self.levels)


def _normalized_levels(run: Run, channels: int) -> Tensor:
    """What each level becomes as input of the network: bf16 (channel, level)."""
    grey = torch.arange(LEVELS, dtype=torch.uint8, device=run.device)
    inputs = run.inputs(grey[:, None, None, None].expand(LEVELS, channels, 1, 1))
    return inputs[:, :, 0, 0].T.to(torch.bfloat16).contiguous()
