"""Oxford-IIIT Pets, with its own split."""

from __future__ import annotations

from pathlib import Path

from ...core import register
from ..frame import Frame
from ._base import Source, damaged
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing, rows
from ._official import Layout, Size, official

PETS = official(
    "pets",
    Layout("oxford-iiit-pet", ("annotations/trainval.txt", "annotations/test.txt", "images/")),
    get="Images and annotations are on the page The Oxford-IIIT Pet Dataset of Oxford's Visual Geometry Group.",
    size=Size(classes=37, train=3_680, test=3_669),
)


@register("pets", kind="task", year=2012, companions=PHOTOGRAPHS)
def pets(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Cats and dogs by breed: 3,680 training and 3,669 test photographs, 37 classes.

    Reads ``annotations/trainval.txt``, ``annotations/test.txt`` and ``images``. A line has an image, its breed from 1
    to 37, and two numbers that are not used; breeds are called as their images are.

    Images are kept whole with a short side of `resize`, by default `size`, and tested on their middle square, as in the
    experiments on transfer of "What's in a Loss Function for Image Classification?".

    Differs from the paper: outlines of the animals are not used.

    Licence: CC BY-SA 4.0.

    Reference: Parkhi, Vedaldi, Zisserman, Jawahar. Cats and Dogs. CVPR 2012.
    """
    frame = Frame(size, size if resize is None else resize)
    _, folder, (train, test, _) = PETS.find(root)
    base, lines = folder.resolve(), {"train": list(rows(train, 4)), "test": list(rows(test, 4))}
    names: dict[str, str] = {}
    for where, (image, label, *_) in lines["train"]:
        name = image.rpartition("_")[0]  # Abyssinian_100
        if names.setdefault(label, name) != name:
            raise damaged(train, f"breed {label} for images of {names[label]} alone", f"{image} in {where}")
    listing = Listing(PETS, base, len(names), first=1)
    for part, of_part in lines.items():
        for where, (image, label, *_) in of_part:
            listing.add(part, where, f"images/{image}.jpg", label)
    class_names = [names.get(str(1 + label), str(1 + label)) for label in range(len(names))]
    return source_of_files(base, listing.files(), class_names, frame)
