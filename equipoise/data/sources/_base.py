"""What all sources share: where files are looked for, and how they are read."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...core import EquipoiseError
from ..content import content_of_tensors
from ..image_files import each_read
from ..task import Split


@dataclass(frozen=True)
class Source:
    """A data set as its authors made it: official train and test images, before any imbalance.

    `valid` is there where the authors set validation images apart. `content` tells this set from any other (see
    `content`); None where the images come with a package, and so cannot change behind a study's back.
    """

    train: Split
    test: Split
    class_names: tuple[str, ...]
    valid: Split | None = None
    content: str | None = None

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

    def in_memory(self) -> Source:
        """The same with all images read."""
        train, test, *valid = each_read([split.in_memory for split in self.splits.values()])
        return replace(self, train=train, test=test, valid=valid[0] if valid else None)


@dataclass(frozen=True)
class Layout:
    """Files that make up a set; `folder` is what the official archive unpacks to, "" where it has none."""

    folder: str
    files: tuple[str, ...]


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


def cache_folder() -> Path:
    """The user's, where systems keep what can be made again."""
    if sys.platform == "darwin":
        base = "~/Library/Caches"
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return _absolute(base) / "equipoise"


def locate(task: str, layouts: Sequence[Layout], root: str | Path | None, hint: str = "") -> tuple[Layout, list[Path]]:
    """The first complete layout and its files, each plain or with ``.gz``; the error says what to put where."""
    bases, incomplete = data_folders(root), ""
    for base in bases:
        for layout in layouts:
            # the archive's folder, the task's (Debian writes it with hyphens), or the files directly
            parents = (base / task, base / task.replace("_", "-"), base)
            for folder in dict.fromkeys([p / layout.folder for p in parents] + list(parents)):
                paths = [_existing(folder / name) for name in layout.files]
                found = [path for path in paths if path]
                if len(found) == len(paths):
                    return layout, found
                if found and not incomplete:
                    lost = [name for name, path in zip(layout.files, paths, strict=True) if not path]
                    incomplete = f" {folder} has a part of them and lacks {', '.join(lost)}."
    wanted = ", or ".join(f"{', '.join(x.files)} into {bases[0] / task / x.folder}" for x in layouts)
    setting = "set EQUIPOISE_DATA to" if root is None else "give as root"
    raise EquipoiseError(
        f"the files of {task} were not found.{incomplete} Put {wanted} (plain or .gz), or {setting} the folder that "
        f"holds them.{hint} Looked in {', '.join(map(str, bases))}."
    )


def _existing(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return path if path.is_file() else packed if packed.is_file() else None


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked where its name ends in ``.gz``."""
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise EquipoiseError(f"{path} cannot be read ({error}); copy or download it again") from error


def damaged(path: Path, expected: str, got: str) -> EquipoiseError:
    """The error for a file whose content is not what its format says."""
    return EquipoiseError(f"{path} is damaged: expected {expected}, got {got}; copy or download it again")


def check_labels(path: Path, labels: NDArray[Any], num_classes: int) -> None:
    """Labels of a file run from 0 to ``num_classes - 1``."""
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < num_classes:
        raise damaged(path, f"labels from 0 to {num_classes - 1}", f"{labels.min()} to {labels.max()}")


def as_split(images: NDArray[Any], labels: NDArray[Any]) -> Split:
    """Images (N, c, h, w) and labels (N,) as tensors of their own memory."""
    return Split(torch.from_numpy(images.astype(np.uint8)), torch.from_numpy(labels.astype(np.int64)))
