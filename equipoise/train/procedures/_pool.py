"""Further batches within a step: classes by their shares, images of a class alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ...core import Batch
from ...data import Split, augmented

if TYPE_CHECKING:
    from ..loop import Run


class Pool(nn.Module):
    """Draws from `split`, with replacement: first a class by `shares` (C,), then one of its images.

    A class without images is never drawn, whatever its share.
    """

    order: Tensor
    first: Tensor
    count: Tensor
    edges: Tensor

    def __init__(self, split: Split, shares: Tensor) -> None:
        super().__init__()
        self.split = split
        count = torch.bincount(split.labels, minlength=len(shares))
        edges = shares.to(count.device, torch.float64).where(count > 0, 0.0).cumsum(0)
        # made from the task, so no part of a checkpoint
        self.register_buffer("order", split.labels.argsort(stable=True), persistent=False)  # class by class
        self.register_buffer("first", count.cumsum(0) - count, persistent=False)
        self.register_buffer("count", count, persistent=False)
        self.register_buffer("edges", edges / edges[-1], persistent=False)

    def draw(self, run: Run, n: int) -> Batch:
        """A batch of n, augmented and normalised as in training; the stream of the run's own batches stays as it is."""
        stream = run.streams["mix"]
        index, target = self.indices(n, stream)
        return Batch(run.inputs(augmented(run.augment, self.split.images, index, stream)), target)

    def indices(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Indices of n images in the split, and their classes."""
        # not torch.multinomial: it waits for the device to see whether the shares are valid
        place, turn = torch.rand(2, n, dtype=torch.float32, device=self.edges.device, generator=generator).double()
        target = torch.searchsorted(self.edges, place, right=True)
        return self.order[self.first[target] + (turn * self.count[target]).long()], target
