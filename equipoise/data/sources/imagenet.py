"""ImageNet (ILSVRC 2012), in the layouts in which it is given away."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...core import register
from ...core.escaping import visible
from ..decode import DataError
from ..frame import frame_of_photographs
from ..walk import subfolders
from ._base import Source, damaged
from ._files import PHOTOGRAPHS, Files, files_of_classes, source_of_files
from ._lists import Listing, read_text, rows
from ._mat import read_mat, whole_numbers
from ._official import Layout, Size, official

DEVKIT = "ILSVRC2012_devkit_t12/data"
TRUTH = f"{DEVKIT}/ILSVRC2012_validation_ground_truth.txt"
KAGGLE = Layout("", ("ILSVRC/Data/CLS-LOC/train/", "ILSVRC/Data/CLS-LOC/val/", "LOC_val_solution.csv"))
WITH_DEVKIT = Layout("", ("train/", "val/", f"{DEVKIT}/meta.mat", TRUTH))
SORTED = Layout("", ("train/", "val/"))

IMAGENET = official(
    "imagenet",
    KAGGLE,
    WITH_DEVKIT,
    SORTED,
    get="It is given away on ImageNet's page (ILSVRC 2012, after registration) and on Kaggle's of the challenge.",
    size=Size(classes=1_000, train=1_281_167, test=50_000),
)


@register("imagenet", kind="task", year=2015, arxiv="1409.0575", companions=PHOTOGRAPHS)
def imagenet(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """ImageNet: 1,281,167 training and 50,000 test photographs, a thousand classes.

    Reads ``train/CLASS`` and ``val`` of ILSVRC 2012, where ``val`` has one folder per class, or all images with
    ``ILSVRC2012_devkit_t12`` beside it; or what Kaggle unpacks, ``ILSVRC/Data/CLS-LOC`` with ``LOC_val_solution.csv``.
    Classes are in the order of their WordNet identifiers, as usual. The official test images have no labels, so the
    validation images are the test set, as in all papers here.

    Images are kept whole with a short side of `resize`, by default 8/7 of `size`, and tested on their middle square.

    Differs from the paper: nothing known.

    Licence: for non-commercial research.

    Reference: Russakovsky, Deng, Su and others. ImageNet Large Scale Visual Recognition Challenge. IJCV 2015.
    """
    frame = frame_of_photographs(size, resize)
    layout, folder, (train, val, *about) = IMAGENET.find(root)
    base = folder.resolve()
    names = subfolders(train, base)
    files = {"train": files_of_classes(train, base, names)}
    if layout is SORTED or subfolders(val, base):
        files["test"] = _sorted_images(val, base, names)
    else:
        lines = _of_kaggle(*about) if layout is KAGGLE else _of_devkit(*about)
        files |= _listed_images(base, str(val.relative_to(folder)), names, lines)
    return source_of_files(base, files, names, frame, "imagenet")


def _sorted_images(val: Path, base: Path, names: list[str]) -> Files:
    if not subfolders(val, base):
        raise DataError(
            f"{visible(val)} has no class folders: sort its images into them, or put ILSVRC2012_devkit_t12, which has "
            "their labels, beside it"
        )
    return files_of_classes(val, base, names)


def _listed_images(base: Path, val: str, names: list[str], lines: Iterator[tuple[str, str, str]]) -> dict[str, Files]:
    label_of = {name: label for label, name in enumerate(names)}
    listing = Listing(IMAGENET, base, len(names))
    for where, image, name in lines:
        listing.add("test", where, f"{val}/{image}.JPEG", label_of.get(name, f"class {name}"))
    return listing.files()


def _of_devkit(meta: Path, truth: Path) -> Iterator[tuple[str, str, str]]:
    """Place, image and class of each validation image: line i has the number of the class of image i."""
    (synsets,) = read_mat(meta, "synsets")
    synsets = np.atleast_1d(synsets)
    if not {"ILSVRC2012_ID", "WNID"} <= set(synsets.dtype.names or ()):
        raise damaged(meta, "synsets with ILSVRC2012_ID and WNID", f"{synsets.dtype}")
    numbers = whole_numbers(meta, "ILSVRC2012_ID", np.array(synsets["ILSVRC2012_ID"].tolist()))
    name_of = {str(number): str(name) for number, name in zip(numbers, synsets["WNID"], strict=True)}
    for number, (where, (identifier,)) in enumerate(rows(truth, 1), 1):
        yield where, f"ILSVRC2012_val_{number:08}", name_of.get(identifier, identifier)


def _of_kaggle(solution: Path) -> Iterator[tuple[str, str, str]]:
    """The same of the table ``ImageId, PredictionString``, where the latter begins with the class."""
    for number, row in enumerate(csv.DictReader(read_text(solution).splitlines()), 2):
        try:
            image, name = row["ImageId"], row["PredictionString"].split()[0]
        except (KeyError, AttributeError, IndexError):
            raise damaged(solution, "ImageId and PredictionString in every line", f"{row} in line {number}") from None
        yield f"{solution.name}, line {number}", image, name
