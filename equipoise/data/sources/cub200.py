"""Caltech-UCSD Birds-200-2011, with its own split."""

from __future__ import annotations

from pathlib import Path

from ...core import register
from ..frame import frame_of_photographs
from ._base import Source, damaged
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing, rows
from ._official import Layout, Size, official

LISTS = ("classes.txt", "images.txt", "image_class_labels.txt", "train_test_split.txt")
PARTS = {"1": "train", "0": "test"}
CUB200 = official(
    "cub200",
    Layout("CUB_200_2011", (*LISTS, "images/")),
    get="CUB_200_2011.tgz is given away on CaltechDATA, the data repository of Caltech.",
    size=Size(classes=200, train=5_994, test=5_794),
)


@register("cub200", kind="task", year=2011, companions=PHOTOGRAPHS)
def cub200(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Birds of two hundred species: 5,994 training and 5,794 test photographs.

    Reads ``CUB_200_2011``: ``images.txt``, ``image_class_labels.txt``, ``train_test_split.txt``, ``classes.txt`` and
    ``images``. To hold a quarter of the training images out, as "Four Things Everyone Should Know to Improve Batch
    Normalization" does, write ``valid = 0.25``.

    Images are kept whole with a short side of `resize`, by default 8/7 of `size`, and tested on their middle square.

    Differs from the paper: bounding boxes and parts are not used.

    Licence: for non-commercial research and education.

    Reference: Wah, Branson, Welinder, Perona, Belongie. The Caltech-UCSD Birds-200-2011 Dataset. Technical report,
    Caltech 2011.
    """
    frame = frame_of_photographs(size, resize)
    _, folder, (classes, images, labels, split, _) = CUB200.find(root)
    base = folder.resolve()
    names = [name.partition(".")[2] or name for name in _by_number(classes).values()]
    image_of, label_of, is_training = _by_number(images), _by_number(labels), _by_number(split)
    for path, table in ((labels, label_of), (split, is_training)):
        if lost := sorted(image_of.keys() - table.keys()):
            raise damaged(path, f"a line for each of the {len(image_of)} images", f"none for {', '.join(lost[:5])}")
    listing = Listing(CUB200, base, len(names), first=1)
    for number, image in image_of.items():
        if is_training[number] not in PARTS:
            raise damaged(split, "1 for training or 0 for test", f"{is_training[number]} for image {number}")
        part = PARTS[is_training[number]]
        listing.add(part, f"{images.name}, image {number}", f"images/{image}", label_of[number])
    return source_of_files(base, listing.files(), names, frame)


def _by_number(path: Path) -> dict[str, str]:
    """What a list says of each number, its first field."""
    found: dict[str, str] = {}
    for where, (number, value) in rows(path, 2):
        if number in found:
            raise damaged(path, "one line for each number", f"{number} again in {where}")
        found[number] = value
    return found
