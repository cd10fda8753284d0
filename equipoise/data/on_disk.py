"""Images in a file instead of in memory: mapped, so that processes share them and a set may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from .image_files import ImageFiles


class OnDisk:
    """Images (N, c, h, w) as uint8 in a ``.npy`` file, read when asked for; `rows` of it, in their order.

    It is indexed and split like the tensor it stands for, and goes to another process as its path.
    """

    def __init__(self, path: Path | str, rows: Tensor | None = None) -> None:
        self.path = Path(path)
        self.rows = torch.arange(len(self._file)) if rows is None else rows.cpu()

    @cached_property
    def _file(self) -> Tensor:
        # copy-on-write, although nobody writes: PyTorch warns of memory that it may not write to
        return torch.from_numpy(np.load(self.path, mmap_mode="c", allow_pickle=False))

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "rows": self.rows}

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self.rows), *self._file.shape[1:]))

    def __len__(self) -> int:
        return len(self.rows)

    def numel(self) -> int:
        return self.shape.numel()

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        """The images at `index`, in memory of their own."""
        return self._file.index_select(0, self.rows[index])

    def in_memory(self) -> Tensor:
        return self[slice(None)]

    def take(self, rows: Tensor) -> OnDisk:
        """These rows alone; nothing is read."""
        taken = OnDisk(self.path, self.rows[rows])
        taken.__dict__["_file"] = self._file  # the mapping outlives the file's name
        return taken

    def split(self, size: int) -> Iterator[Tensor]:
        """The images in order, at most `size` at a time."""
        return (self[slice(start, start + size)] for start in range(0, len(self), size))


def write_images(path: Path, images: Tensor | OnDisk | ImageFiles) -> OnDisk:
    """Write images to a file, a part at a time, and give them back as `OnDisk`."""
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": tuple(images.shape)}
        npy.write_array_header_2_0(file, header)
        for part in images.split(4096):
            file.write(part.contiguous().numpy().tobytes())
    return OnDisk(path)
