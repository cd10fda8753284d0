"""Caltech-256, one folder per class, with the split of the paper on four things about batch normalization."""

from __future__ import annotations

from pathlib import Path

from ...core import register
from ...core.escaping import visible
from ..decode import DataError
from ..frame import frame_of_photographs
from ..split import split_by_class
from ..walk import subfolders
from ._base import Source
from ._files import PHOTOGRAPHS, Files, chosen, files_of_classes, source_of_files
from ._official import Layout, Size, official

TRAIN, VALID, TEST = 40, 10, 30  # images of a class
SEED = 0
CLUTTER = "257.clutter"

CALTECH256 = official(
    "caltech256",
    Layout("256_ObjectCategories", ("001.ak47/", "256.toad/")),
    get="256_ObjectCategories.tar is given away on CaltechDATA, the data repository of Caltech.",
    size=Size(classes=256, train=10_240, valid=2_560, test=7_680),
)


@register("caltech256", kind="task", year=2007, companions=PHOTOGRAPHS)
def caltech256(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Photographs of 256 kinds of thing: 10,240 training, 2,560 validation and 7,680 test images.

    Reads ``256_ObjectCategories`` without its folder of clutter. It has no split of its own: of the 29,780 images 40 of
    each class are trained on, 10 validate and 30 test, as in "Four Things Everyone Should Know to Improve Batch
    Normalization"; a fixed seed draws them.

    Images are kept whole with a short side of `resize`, by default 8/7 of `size`, and tested on their middle square.

    Differs from the paper: it does not say which images it drew.

    Licence: CC BY 4.0.

    Reference: Griffin, Holub, Perona. Caltech-256 Object Category Dataset. Technical report, Caltech 2007.
    """
    frame = frame_of_photographs(size, resize)
    base = CALTECH256.find(root).folder.resolve()
    folders = [folder for folder in subfolders(base, base) if folder != CLUTTER]
    files, labels = files_of_classes(base, base, [*folders, CLUTTER])
    # deeper folders are left-overs of those who collected the set
    rows = [i for i, file in enumerate(files) if labels[i] < len(folders) and file.path.parent.parent == base]
    kept = [files[i] for i in rows], labels[rows]
    names = [folder.partition(".")[2] or folder for folder in folders]
    return source_of_files(base, _drawn(kept, names), names, frame)


def _drawn(files: Files, names: list[str]) -> dict[str, Files]:
    _, pools = split_by_class(files[1], len(names), 0, SEED)
    for name, pool in zip(names, pools, strict=True):
        if len(pool) < TRAIN + VALID + TEST:
            raise DataError(
                f"class {visible(name)} of caltech256 has {len(pool)} images; {TRAIN} to train, {VALID} to validate "
                f"and {TEST} to test are needed: copy or unpack the set again. {CALTECH256.get}"
            )
    ends = {"train": (0, TRAIN), "valid": (TRAIN, TRAIN + VALID), "test": (TRAIN + VALID, TRAIN + VALID + TEST)}
    return {part: chosen(files, [pool[start:stop] for pool in pools]) for part, (start, stop) in ends.items()}
