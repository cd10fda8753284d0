"""Images in files of the usual formats, decoded when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import EquipoiseError

READERS = 8  # threads: decoding happens outside Python


class ImageFiles:
    """Images (N, 3, size, size) as uint8 in files of any format that Pillow knows, decoded a part at a time."""

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        self.paths, self.size = list(paths), size

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self.paths), 3, self.size, self.size))

    def __len__(self) -> int:
        return len(self.paths)

    def numel(self) -> int:
        return self.shape.numel()

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        """The images at `index`, decoded."""
        return self.take(torch.arange(len(self))[index]).in_memory()

    def take(self, rows: Tensor) -> ImageFiles:
        """These rows alone; nothing is read."""
        return ImageFiles([self.paths[i] for i in rows.tolist()], self.size)

    def split(self, size: int) -> Iterator[Tensor]:
        """The images in order, at most `size` at a time."""
        with ThreadPoolExecutor(READERS) as pool:
            for start in range(0, len(self.paths), size):
                part = list(pool.map(self._read, self.paths[start : start + size]))
                yield torch.from_numpy(np.stack(part)).permute(0, 3, 1, 2).contiguous()

    def in_memory(self) -> Tensor:
        parts = list(self.split(1024))
        return torch.cat(parts) if parts else torch.empty(self.shape, dtype=torch.uint8)

    def _read(self, path: Path) -> NDArray[np.uint8]:
        """The middle square of an image, at the wanted size."""
        image_module = _pillow()
        try:
            with image_module.open(path) as image:
                image.draft("RGB", (self.size, self.size))  # a JPEG is decoded at a fraction of its size
                image = image.convert("RGB")
                side = min(image.size)
                left, top = (image.width - side) // 2, (image.height - side) // 2
                box = (left, top, left + side, top + side)
                return np.asarray(image.resize((self.size, self.size), image_module.Resampling.BILINEAR, box))
        except (OSError, SyntaxError, ValueError) as error:
            raise EquipoiseError(f"{path} cannot be read as an image ({error}); mend it or take it away") from None


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise EquipoiseError("reading image files needs Pillow: pip install pillow") from None
    return Image
