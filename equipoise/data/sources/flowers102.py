"""Oxford Flowers-102, with its own split."""

from __future__ import annotations

from pathlib import Path

from ...core import register
from ..frame import Frame
from ._base import Source, check_labels
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing
from ._mat import read_mat, whole_numbers
from ._official import Layout, Size, official

FLOWERS102 = official(
    "flowers102",
    Layout("", ("imagelabels.mat", "setid.mat", "jpg/")),
    get="They are given away on the page 102 Category Flower Dataset of Oxford's Visual Geometry Group.",
    size=Size(classes=102, train=1_020, valid=1_020, test=6_149),
)
PARTS = {"train": "trnid", "valid": "valid", "test": "tstid"}  # here -> in setid.mat


@register("flowers102", kind="task", year=2008, companions=PHOTOGRAPHS)
def flowers102(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Flowers that grow in the United Kingdom: 1,020 training, 1,020 validation and 6,149 test images, 102 classes.

    Reads ``imagelabels.mat``, ``setid.mat`` and the images in ``jpg``. Classes are called by their numbers: the release
    has no names. Needs scipy.

    Images are kept whole with a short side of `resize`, by default `size`, and tested on their middle square, as in the
    experiments on transfer of "What's in a Loss Function for Image Classification?".

    Differs from the paper: nothing known.

    Licence: none stated; cite it, do not pass it on.

    Reference: Nilsback, Zisserman. Automated Flower Classification over a Large Number of Classes. ICVGIP 2008.
    """
    frame = Frame(size, size if resize is None else resize)
    _, folder, (label_path, split_path, _) = FLOWERS102.find(root)
    base = folder.resolve()
    labels = whole_numbers(label_path, "labels", *read_mat(label_path, "labels"))
    num_classes = len(set(labels.tolist()))
    listing = Listing(FLOWERS102, base, num_classes, first=1)
    for (part, variable), array in zip(PARTS.items(), read_mat(split_path, *PARTS.values()), strict=True):
        numbers = whole_numbers(split_path, variable, array)
        check_labels(split_path, numbers, len(labels), first=1, what="image numbers")
        for number in numbers.tolist():
            where = f"{split_path.name}, {variable}"
            listing.add(part, where, f"jpg/image_{number:05}.jpg", int(labels[number - 1]))
    return source_of_files(base, listing.files(), [str(1 + label) for label in range(num_classes)], frame)
