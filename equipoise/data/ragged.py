"""Images that keep their own shapes, as photographs come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from .arena import Arena, ArenaCopy, indexed
from .boxes import Axis, read_boxes, taps
from .frame import Frame


class Ragged:
    """Images of any height and width with three channels, one after the other in an arena.

    Indexed and split it gives their test views, (N, 3, size, size) as uint8: each image is scaled until its short side
    is `frame.resize`, then the middle square is cut out. `cut` gives any boxes of the whole images.

    Args:
        arena: the pixels.
        table: (N, 3) as int64 on the CPU: the place of each image's first pixel in the arena, its height and its width.
        frame: the sizes.
    """

    def __init__(self, arena: Arena | ArenaCopy, table: Tensor, frame: Frame) -> None:
        self.arena, self.table, self.frame = arena, table, frame
        self._table = table.to(arena.device)  # what a step reads
        self._largest: dict[tuple[float, float], tuple[int, int]] = {}  # boxes by their aspect

    @classmethod
    def of(cls, images: Iterable[NDArray[np.uint8]], frame: Frame) -> Ragged:
        """From arrays (h, w, 3), in memory."""
        images = list(images)
        pixels = np.concatenate([np.empty((0, 3), np.uint8), *(image.reshape(-1, 3) for image in images)])
        return cls(Arena(torch.from_numpy(pixels)), table_of([image.shape[:2] for image in images]), frame)

    @property
    def shape(self) -> torch.Size:
        """Of the test views."""
        return torch.Size((len(self), 3, self.frame.size, self.frame.size))

    @property
    def device(self) -> torch.device:
        """Where batches are made."""
        return self.arena.device

    def __len__(self) -> int:
        return len(self.table)

    def numel(self) -> int:
        """Bytes that these images take."""
        return 3 * int((self.table[:, 1] * self.table[:, 2]).sum())

    def take(self, rows: Tensor) -> Ragged:
        """These rows alone; the arena is shared."""
        return Ragged(self.arena, self.table[rows.cpu()], self.frame)

    def in_memory(self) -> Ragged:
        """The same, not in a file; read when it is first used."""
        return self._on(torch.device("cpu")) if self.arena.mapped else self

    def to(self, device: torch.device | str) -> Ragged:
        """The same on `device`, except for images in a file: those come a batch at a time."""
        return self if self.arena.mapped else self._on(torch.device(device))

    def _on(self, device: torch.device) -> Ragged:
        original, device = self.arena.original, indexed(device)
        there = original if not original.mapped and original.device == device else original.copy(device)
        return Ragged(there, self.table, self.frame)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        """The test views of the images at `index`."""
        first, heights, widths = self._table[index].unbind(1)
        i, step = torch.arange(self.frame.size, device=self.device), self._largest_view_step
        rows, columns = (
            taps(_middle(side, other, self.frame), i, step, "bilinear")
            for side, other in ((heights, widths), (widths, heights))
        )
        return read_boxes(self.arena.pixels, first, widths, rows, columns).contiguous()

    def split(self, size: int) -> Iterator[Tensor]:
        """The test views in order, at most `size` at a time."""
        return (self[slice(start, start + size)] for start in range(0, len(self), size))

    def sides(self, index: Tensor) -> Tensor:
        """Heights and widths (n, 2) of the images at `index`."""
        return self._table[index, 1:]

    def cut(self, index: Tensor, boxes: Tensor, size: tuple[int, int], mode: str, largest: tuple[int, int]) -> Tensor:
        """One box of each of the images at `index`, scaled to `size` = (H, W): (n, 3, H, W), channels last in memory.

        Args:
            index: (n,).
            boxes: (n, 5): top, left, height and width, whole numbers, and 1 for a mirror image, else 0.
            size: of the output.
            mode: "bilinear" or "bicubic".
            largest: no box is higher or wider than this; it is asked for so that nothing waits for a device.
        """
        first, widths = self._table[index, 0], self._table[index, 2]
        top, left, height, width, mirrored = boxes.double().split(1, 1)
        down = Axis(top, height / size[0], top, top + height)
        across = Axis(left, width / size[1], left, left + width)
        i, j = (torch.arange(side, device=self.device) for side in size)
        j = torch.where(mirrored.bool(), size[1] - 1 - j, j)
        rows, columns = taps(down, i, largest[0] / size[0], mode), taps(across, j, largest[1] / size[1], mode)
        return read_boxes(self.arena.pixels, first, widths, rows, columns)

    def largest_box(self, aspect: tuple[float, float]) -> tuple[int, int]:
        """A height and a width that no box with an allowed aspect (width : height) in any of the images exceeds."""
        if aspect not in self._largest:
            self._largest[aspect] = largest_box(self.table[:, 1:], aspect)
        return self._largest[aspect]

    @cached_property
    def _largest_view_step(self) -> float:
        if not len(self):
            return 1.0
        heights, widths = self.table[:, 1], self.table[:, 2]
        return max(float(_middle(*sides, self.frame).step.max()) for sides in ((heights, widths), (widths, heights)))


def largest_box(sides: Tensor, aspect: tuple[float, float]) -> tuple[int, int]:
    """A height and a width that no box with an allowed aspect in images of these sides (n, 2) exceeds."""
    if not len(sides):
        return 1, 1
    heights, widths = sides.double().unbind(1)
    # sides are rounded, so that a box may be a little off its aspect
    height = ((widths + 1) / aspect[0] + 1).minimum(heights)
    width = ((heights + 1) * aspect[1] + 1).minimum(widths)
    return math.ceil(height.max()), math.ceil(width.max())


def _middle(side: Tensor, other: Tensor, frame: Frame) -> Axis:
    """The test view along an axis of images that are `side` (n,) long there, and `other` across."""
    assert frame.resize is not None, "these images are kept whole"
    scaled = frame.resize * side // torch.minimum(side, other)
    cut_off = (scaled - frame.size) // 2
    step = side.double() / scaled
    return Axis(*(values.double()[:, None] for values in (cut_off * step, step, torch.zeros_like(side), side)))


def table_of(shapes: ArrayLike) -> Tensor:
    """The table of images of these heights and widths (N, 2), one after the other from the start of an arena on."""
    sides = torch.from_numpy(np.asarray(shapes, np.int64).reshape(-1, 2))
    counts = sides.prod(1)
    return torch.column_stack((counts.cumsum(0) - counts, sides))
