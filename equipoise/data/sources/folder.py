"""Your own images: a folder with one folder a class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ... import checks
from ...core import EquipoiseError, register
from ..image_files import ImageFiles
from ..split import split_by_class
from ..task import Split
from ._base import Source, data_folders

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
TEST_SHARE = 0.2
TEST_SEED = 0


@register("folder", kind="task", companions={"augment": "crop_flip"})
def folder(path: str, size: int = 64, root: str | Path | None = None) -> Source:
    """Your own images: `path` has one folder a class, or `train` and `test` folders that have one each.

    The middle square of each image is brought to `size` × `size` pixels and three channels. Without a `test` folder
    20 % of each class, drawn with a fixed seed, are the test set. Folders are classes in the order of their names;
    names that begin with a dot are passed over. A relative `path` is looked for here, then where all data is; with a
    `root`, below that alone.

    Differs from the paper: nothing known.

    Reference: none.
    """
    checks.whole("size", size, 1)
    base = _located(Path(path).expanduser(), root)
    if (base / "train").is_dir() and (base / "test").is_dir():
        names = _class_names(base / "train")
        return Source(_split_of(base / "train", names, size), _split_of(base / "test", names, size), names)
    names = _class_names(base)
    paths, labels = _files(base, names)
    held_out, rest = split_by_class(labels, len(names), TEST_SHARE, TEST_SEED)
    train, test = (np.sort(np.concatenate(part)) for part in (rest, held_out))
    return Source(_split(paths, labels, train, size), _split(paths, labels, test, size), names)


def _located(path: Path, root: str | Path | None) -> Path:
    places = [parent / path for parent in ([] if root is not None else [Path.cwd()]) + [*data_folders(root)]]
    for place in places:
        if place.is_dir():
            return place
    tried = ", ".join(map(str, dict.fromkeys(places)))
    raise EquipoiseError(f"{path} is not a folder; give the folder that holds one folder a class. Looked for {tried}.")


def _split_of(base: Path, names: tuple[str, ...], size: int) -> Split:
    strange = sorted(set(_class_names(base)) - set(names))
    if strange:
        raise EquipoiseError(f"{base} has classes without training images: {', '.join(strange)}; take them away")
    paths, labels = _files(base, names)
    return _split(paths, labels, np.arange(len(paths)), size)


def _class_names(base: Path) -> tuple[str, ...]:
    names = tuple(sorted(p.name for p in base.iterdir() if p.is_dir() and not p.name.startswith(".")))
    if len(names) < 2:
        raise EquipoiseError(f"{base} has {len(names)} folders; a class is a folder of images, and two are needed")
    return names


def _files(base: Path, names: Sequence[str]) -> tuple[list[Path], NDArray[np.int64]]:
    """The images of all classes and their labels, in the order of names."""
    by_class = [
        sorted(p for p in (base / name).rglob("*") if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))
        for name in names
    ]
    labels = np.repeat(np.arange(len(names)), [len(paths) for paths in by_class])
    return [path for paths in by_class for path in paths], labels


def _split(paths: Sequence[Path], labels: NDArray[np.int64], rows: NDArray[np.int64], size: int) -> Split:
    return Split(ImageFiles([paths[i] for i in rows], size), torch.from_numpy(labels[rows]))
