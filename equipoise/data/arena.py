"""Pixels of many images one after the other, in a file that processes map, in memory, or on a GPU."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor


class Arena:
    """Pixels (P, 3) as uint8, of a tensor, or of a file of nothing else that is mapped.

    A copy elsewhere is made once and shared by all who read there, for as long as one of them lives: the runs of a pack
    share one copy on their GPU, whatever their seeds.
    """

    def __init__(self, source: Tensor | Path) -> None:
        self.source = source
        self._copies: WeakValueDictionary[torch.device, ArenaCopy] = WeakValueDictionary()
        self.pixels = source if isinstance(source, Tensor) else _mapped(source)

    def __reduce__(self) -> tuple[type[Arena], tuple[Tensor | Path]]:
        return Arena, (self.source,)  # a file goes to another process as its path

    @property
    def original(self) -> Arena:
        return self

    @property
    def device(self) -> torch.device:
        return self.pixels.device

    @property
    def mapped(self) -> bool:
        """Whether the pixels are in a file."""
        return isinstance(self.source, Path)

    def has_copy(self, device: torch.device) -> bool:
        """Whether a copy in this device's memory is in use already."""
        return indexed(device) in self._copies

    def copy(self, device: torch.device) -> ArenaCopy:
        """The same in the memory of `device`, read when it is first used."""
        device = indexed(device)
        copy = self._copies.get(device)
        if copy is None:
            copy = self._copies[device] = ArenaCopy(self, device)
        return copy


class ArenaCopy:
    """An arena in the memory of a device."""

    mapped = False

    def __init__(self, original: Arena, device: torch.device) -> None:
        self.original, self.device = original, device

    def __reduce__(self) -> tuple[type[Arena], tuple[Tensor | Path]]:
        return self.original.__reduce__()

    @cached_property
    def pixels(self) -> Tensor:
        return self.original.pixels.to(self.device, copy=True)


def indexed(device: torch.device) -> torch.device:
    """The device with its number: "cuda" is "cuda:0", or whichever is the current one."""
    return torch.empty(0, device=device).device


def _mapped(path: Path) -> Tensor:
    # copy-on-write, although nobody writes: PyTorch warns of memory that it may not write to
    return torch.from_numpy(np.memmap(path, np.uint8, mode="c").reshape(-1, 3))
