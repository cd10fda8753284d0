"""Images in files of the usual formats, decoded when they are read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core.escaping import visible
from .decode import DataError, import_pillow, read_image
from .frame import Frame
from .names import listed
from .ragged import Ragged

READERS = 8  # threads: decoding happens outside Python

Failure = tuple[Path, str]
T = TypeVar("T")


class ImageFiles:
    """Images in files, decoded a part at a time; `decode` says how pixels are read. Indexed and split they are
    (N, 3, size, size) as uint8: middle squares, or where `frame` keeps images whole, their test views.

    `digests` are the SHA-256 of the files as they were when the set was looked through: other content is refused.
    """

    def __init__(self, paths: Sequence[Path], frame: Frame | int, digests: Sequence[bytes] | None = None) -> None:
        self.paths, self.frame = list(paths), Frame(frame) if isinstance(frame, int) else frame
        self.digests = None if digests is None else list(digests)

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self), 3, self.frame.size, self.frame.size))

    def __len__(self) -> int:
        return len(self.paths)

    def place(self, row: int) -> Path:
        """Where an image lies, as a message says it."""
        return self.paths[row]

    def numel(self) -> int:
        """Bytes that the images take once they are decoded; of whole ones, as if they were square."""
        return 3 * len(self) * (self.frame.keep or self.frame.size) ** 2

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        """The images at `index`, decoded."""
        parts = list(self.take(torch.arange(len(self))[index]).split(1024))
        return torch.cat(parts) if parts else torch.empty((0, *self.shape[1:]), dtype=torch.uint8)

    def take(self, rows: Tensor) -> ImageFiles:
        """These rows alone; nothing is read."""
        chosen = rows.tolist()
        digests = None if self.digests is None else [self.digests[i] for i in chosen]
        return ImageFiles([self.paths[i] for i in chosen], self.frame, digests)

    def split(self, size: int) -> Iterator[Tensor]:
        """The images in order, at most `size` at a time."""
        return (self._views(part) for part in self.decoded(size))

    def _views(self, part: list[NDArray[np.uint8]]) -> Tensor:
        """Decoded images as networks see them: (n, 3, size, size)."""
        if not part:
            return torch.empty((0, *self.shape[1:]), dtype=torch.uint8)
        if self.frame.whole:
            return Ragged.of(part, self.frame)[:]
        return torch.from_numpy(np.stack(part)).permute(0, 3, 1, 2).contiguous()

    def readable(self, size: int) -> Iterator[tuple[Tensor, list[str | None]]]:
        """The images in order, of at most `size` files at a time, without those that cannot be read.

        With them, for every one of these files, comes why it cannot be read, or None. While the caller is at work on
        one part, the next is decoded.
        """
        import_pillow()
        with ThreadPoolExecutor(READERS) as pool:
            ahead = pool.map(self._read, range(min(size, len(self))))
            for start in range(0, len(self), size):
                found = list(ahead)
                ahead = pool.map(self._read, range(start + size, min(start + 2 * size, len(self))))
                yield (
                    self._views([image for image in found if not isinstance(image, str)]),
                    [image if isinstance(image, str) else None for image in found],
                )

    def decoded(self, size: int) -> Iterator[list[NDArray[np.uint8]]]:
        """The images (h, w, 3) as they are kept, at most `size` at a time.

        Where one cannot be read, the error names all that cannot.
        """
        import_pillow()
        with ThreadPoolExecutor(READERS) as pool:
            for start in range(0, len(self), size):
                part, failed = self._part(pool, start, start + size)
                if failed:
                    for further in range(start + size, len(self), size):
                        failed += self._part(pool, further, further + size)[1]
                    raise Unreadable(failed)
                yield part

    def attempted(self) -> tuple[list[NDArray[np.uint8]], list[Failure]]:
        """All images (h, w, 3) as they are kept, by this thread alone, and those that cannot be read."""
        return self._sorted_out([self._read(row) for row in range(len(self))], 0)

    def in_memory(self) -> Tensor | Ragged:
        """All images decoded, as they are kept."""
        if self.frame.whole:
            return Ragged.of((image for part in self.decoded(1024) for image in part), self.frame)
        return self[:]

    def _part(self, pool: ThreadPoolExecutor, start: int, stop: int) -> tuple[list[NDArray[np.uint8]], list[Failure]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, of what is then read all the same or refused
            found = list(pool.map(self._read, range(start, min(stop, len(self)))))
        return self._sorted_out(found, start)

    def _sorted_out(
        self, found: list[NDArray[np.uint8] | str], start: int
    ) -> tuple[list[NDArray[np.uint8]], list[Failure]]:
        """The images that were found from row `start` on, and what could not be read."""
        images = [image for image in found if not isinstance(image, str)]
        return images, [(self.place(start + i), why) for i, why in enumerate(found) if isinstance(why, str)]

    def _read(self, row: int) -> NDArray[np.uint8] | str:
        """The image, or why it cannot be read."""
        try:
            return read_image(self.paths[row], self.frame, self.digests[row] if self.digests else None)
        except ValueError as error:
            return str(error)


class Unreadable(DataError):
    """Files that cannot be read as images, all of them."""

    def __init__(self, failed: Sequence[Failure]) -> None:
        self.failed = failed = sorted(failed)
        if len(failed) == 1:
            path, why = failed[0]
            super().__init__(f"{visible(path)} cannot be read as an image: {why}; mend it or take it away")
        else:
            lines = listed([f"{path}: {why}" for path, why in failed], separator="\n  ")
            super().__init__(f"{len(failed)} files cannot be read as images; mend them or take them away:\n  {lines}")


def each_read(reads: Iterable[Callable[[], T]]) -> list[T]:
    """What every one of `reads` gives; where files cannot be read, one error names those of all."""
    results, failed = [], []
    for read in reads:
        try:
            results.append(read())
        except Unreadable as error:
            failed += error.failed
    if failed:
        raise Unreadable(failed)
    return results
