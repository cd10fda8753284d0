"""What all sources share: what they give, where files are looked for, and how they are read."""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...core import EquipoiseError
from ...core.files import cache_folder
from ..content import content_of_tensors
from ..image_files import each_read
from ..task import Split, streamed


@dataclass(frozen=True)
class Source:
    """A data set as its authors made it: official train and test images, before any imbalance.

    `valid` is there where the authors set validation images apart. `content` tells this set from any other (see
    `content`); None where the images come with a package, and so cannot change behind a study's back. `groups` has a
    number for each training image where some of them belong together, and must not be split.
    """

    train: Split
    test: Split
    class_names: tuple[str, ...]
    valid: Split | None = None
    content: str | None = None
    groups: NDArray[np.int64] | None = None

    @classmethod
    def of_files(cls, train: Split, test: Split, class_names: tuple[str, ...]) -> Source:
        """With the content of images that were read from files into memory."""
        parts = [(split.images[:], split.labels) for split in (train, test)]
        return cls(train, test, class_names, content=content_of_tensors(class_names, parts))

    @property
    def splits(self) -> dict[str, Split]:
        """Those that there are."""
        return {"train": self.train, "test": self.test, **({"valid": self.valid} if self.valid is not None else {})}

    @property
    def nbytes(self) -> int:
        """Memory that all images take."""
        return sum(split.images.numel() for split in self.splits.values())

    @property
    def streamed(self) -> bool:
        """Whether images stay where they are, and are decoded whenever they are read."""
        return streamed(self.train.images)

    def in_memory(self) -> Source:
        """The same with all images read, unless they are streamed."""
        train, test, *valid = each_read([split.in_memory for split in self.splits.values()])
        return replace(self, train=train, test=test, valid=valid[0] if valid else None)


def data_folders(root: str | Path | None = None) -> tuple[Path, ...]:
    """Where sets are looked for, in this order; an explicit `root` is the only place."""
    if root is not None:
        return (_absolute(root),)
    chosen = os.environ.get("EQUIPOISE_DATA")
    # where distributions install shared data, by the XDG base directory specification
    shared = os.environ.get("XDG_DATA_DIRS") or os.pathsep.join(["/usr/local/share", "/usr/share"])
    system = [Path(folder, "datasets") for folder in shared.split(os.pathsep) if folder]
    return (*([_absolute(chosen)] if chosen else []), cache_folder(), *system)


def _absolute(folder: str | Path) -> Path:
    return Path(os.path.abspath(os.path.expanduser(folder)))


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked where its name ends in ``.gz``."""
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise EquipoiseError(f"{path} cannot be read ({error}); copy or download it again") from error


def damaged(path: Path, expected: str, got: str) -> EquipoiseError:
    """The error for a file whose content is not what its format says."""
    return EquipoiseError(f"{path} is damaged: expected {expected}, got {got}; copy or download it again")


def check_labels(path: Path, labels: NDArray[Any], number: int, first: int = 0, what: str = "labels") -> None:
    """Labels of a file run from `first` over so many classes; so may other numbers, over so many things."""
    last = first + number - 1
    if labels.size and not first <= int(labels.min()) <= int(labels.max()) <= last:
        raise damaged(path, f"{what} from {first} to {last}", f"{labels.min()} to {labels.max()}")


def as_split(images: NDArray[Any], labels: NDArray[Any]) -> Split:
    """Images (N, c, h, w) and labels (N,) as tensors of their own memory."""
    return Split(torch.from_numpy(images.astype(np.uint8)), torch.from_numpy(labels.astype(np.int64)))
