"""A source whose images stay in their files: decoded when they are read, known by their content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ...core.escaping import visible
from ...core.files import cache_folder
from ..content import content_of, digests_of
from ..decode import DataError
from ..frame import Frame
from ..image_files import ImageFiles
from ..names import listed
from ..task import Split
from ..walk import ImageFile, image_files, subfolders
from ._base import Source

# what sets of photographs as large as ImageNet's suggest
PHOTOGRAPHS = {"model": "resnet50", "augment": "resized_crop"}

Files = tuple[list[ImageFile], NDArray[np.int64]]  # and their labels


def source_of_files(
    base: Path,
    files: Mapping[str, Files],
    class_names: Sequence[str],
    frame: Frame | int,
    task: str = "",
    groups: NDArray[np.int64] | None = None,
) -> Source:
    """The source whose parts "train", "test" and perhaps "valid" are `files`, all of them below `base`.

    `frame` says at which sizes images are kept and seen; a number is the side of squares. `task` keeps the index of
    tasks apart that take other images of one folder. `groups` are those of the training images, if there are any.
    """
    if lost := [part for part in ("train", "test") if part not in files]:
        raise DataError(f"{visible(base)} has no images to {' and '.join(lost)}: copy or unpack the set again")
    names = tuple(visible(name) for name in class_names)
    if len(set(names)) < len(names):
        alike = sorted(name for name, label in zip(class_names, names, strict=True) if names.count(label) > 1)
        raise DataError(f"{visible(base)} has classes whose names look the same: {listed(alike)}; rename one")
    every = [file for part, _ in files.values() for file in part]
    digests = iter(digests_of(every, base, cache_folder(), task))
    splits, parts = {}, {}
    for part, (own, labels) in files.items():
        of_part = [next(digests) for _ in own]
        images = ImageFiles([file.path for file in own], frame, of_part)
        splits[part], parts[part] = Split(images, torch.from_numpy(labels)), (labels.tolist(), b"".join(of_part))
    in_order = [parts.get(part, ([], b"")) for part in ("train", "valid", "test")]
    content = content_of(names, in_order, None if groups is None else groups.tolist())
    return Source(splits["train"], splits["test"], names, splits.get("valid"), content, groups)


def files_of_classes(
    place: Path, base: Path, names: Sequence[str], others: str = "classes without training images"
) -> Files:
    """The images of a folder that has one folder per class, and their labels, in the order of `names`.

    It may have no other folders; the error calls them `others`.
    """
    there = subfolders(place, base)
    strange = sorted(set(there) - set(names))
    if strange:
        raise DataError(f"{visible(place)} has {others}: {listed(strange)}; take them away")
    by_class = [image_files(place / name, base) if name in there else [] for name in names]
    if not any(by_class):
        raise DataError(f"{visible(place)} has no images: put some into its folders, or take it away")
    labels = np.repeat(np.arange(len(names)), [len(files) for files in by_class])
    return [file for files in by_class for file in files], labels


def chosen(files: Files, pools: Sequence[NDArray[np.int64]]) -> Files:
    """The files at the indices in `pools`, in their order."""
    rows = np.sort(np.concatenate(pools))
    return [files[0][i] for i in rows], files[1][rows]
