"""The images of shards: each read by itself, from its place in a tar file, and decoded as those of a folder are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...core.files import checksum
from ..decode import decoded, open_regular
from ..frame import Frame
from ..image_files import ImageFiles, Unreadable
from ..ragged import Ragged, largest_box
from .index import Shard


class ShardImages(ImageFiles):
    """Images in tar files, decoded whenever they are read: indexed and split they are what `ImageFiles` are.

    Nothing of them is kept in memory but where they lie, about 150 bytes an image.

    Args:
        folder: of the shards.
        shards: their entries in the index, in order.
        frame: the sizes.
        stream: whether the images stay in the shards while a network is trained; else they are decoded once.
    """

    def __init__(self, folder: Path, shards: list[Shard], frame: Frame, stream: bool = True) -> None:
        self.folder, self.frame, self.stream = folder, frame, stream
        self.shards = [(shard.name, shard.nbytes) for shard in shards]
        self.names = np.array([name for shard in shards for name in shard.images], dtype=object)
        counts = [len(shard.images) for shard in shards]
        self.shard = np.repeat(np.arange(len(shards)), counts)
        self.spans = np.concatenate([np.stack((shard.offsets, shard.sizes), 1) for shard in shards])
        self._sides = np.concatenate([np.stack((shard.heights, shard.widths), 1) for shard in shards])
        self._digests = np.concatenate([shard.digests for shard in shards])
        self._largest: dict[tuple[float, float], tuple[int, int]] = {}  # boxes by their aspect

    def __len__(self) -> int:
        return len(self.shard)

    def place(self, row: int) -> Path:
        return self.folder / self.shards[self.shard[row]][0] / str(self.names[row])

    @property
    def digest_bytes(self) -> bytes:
        """What all images are, one after the other."""
        return self._digests.tobytes()

    @property
    def shard_numbers(self) -> Tensor:
        """The shard of each image (N,)."""
        return torch.from_numpy(self.shard)

    def take(self, rows: Tensor) -> ShardImages:
        taken = object.__new__(ShardImages)
        taken.__dict__.update(self.__dict__, _largest={})
        chosen = rows.cpu().numpy()
        for column in ("names", "shard", "spans", "_sides", "_digests"):
            setattr(taken, column, getattr(self, column)[chosen])
        return taken

    def content(self, row: int) -> bytes:
        """An image file as it lies in its shard; raises ValueError, with the reason alone."""
        name, nbytes = self.shards[self.shard[row]]
        offset, size = self.spans[row].tolist()
        with open_regular(self.folder / name) as file:
            if (length := os.fstat(file.fileno()).st_size) != nbytes:
                raise ValueError(f"its shard has {length:,} bytes, and the index says {nbytes:,}")
            found = os.pread(file.fileno(), size, offset)
        if bytes.fromhex(checksum(found)) != self._digests[row].tobytes():
            raise ValueError("its shard has changed since the index was written, or is damaged")
        return found

    def image(self, row: int) -> NDArray[np.uint8]:
        """One image (h, w, 3) as it is kept."""
        found = self._read(row)
        if isinstance(found, str):
            raise Unreadable([(self.place(row), found)])
        return found

    def view(self, image: NDArray[np.uint8]) -> Tensor:
        """An image (h, w, 3) as networks see it: (3, size, size)."""
        return self._views([image])[0]

    def _read(self, row: int) -> NDArray[np.uint8] | str:
        try:
            return decoded(self.content(row), self.frame)
        except (ValueError, OSError) as error:
            return str(error)

    # -- what is cut out of whole images, as from a `Ragged` -----------------------------------------------------------

    device = torch.device("cpu")  # where batches are made

    def sides(self, index: Tensor) -> Tensor:
        """Heights and widths (n, 2) of the images at `index`, as they are kept."""
        assert self.frame.keep is not None, "these images are kept whole"
        sides = torch.from_numpy(self._sides[index.cpu().numpy()])
        short = sides.amin(1, keepdim=True)
        return torch.where(short > self.frame.keep, self.frame.keep * sides // short, sides)

    def cut(self, index: Tensor, boxes: Tensor, size: tuple[int, int], mode: str, largest: tuple[int, int]) -> Tensor:
        """One box of each of the images at `index`, scaled; see `Ragged.cut`."""
        (images,) = self.take(index).decoded(len(index))
        whole = Ragged.of(images, self.frame)
        rows = torch.arange(len(images))
        return whole.cut(rows, _inside(boxes, whole.sides(rows)), size, mode, largest)

    def largest_box(self, aspect: tuple[float, float]) -> tuple[int, int]:
        if aspect not in self._largest:
            self._largest[aspect] = largest_box(self.sides(torch.arange(len(self))), aspect)
        return self._largest[aspect]


def _inside(boxes: Tensor, sides: Tensor) -> Tensor:
    """Boxes (n, 5) moved into images of these sides: a JPEG that is decoded at a fraction may lack a row or column."""
    corner, extent, mirrored = boxes.split((2, 2, 1), 1)
    extent = extent.minimum(sides)
    return torch.cat((corner.minimum(sides - extent), extent, mirrored), 1)
