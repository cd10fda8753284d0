"""Food-101, with its own split."""

from __future__ import annotations

from pathlib import Path

from ...core import register
from ..frame import Frame
from ._base import Source
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing, rows
from ._official import Layout, Size, official

FOOD101 = official(
    "food101",
    Layout("food-101", ("meta/classes.txt", "meta/train.txt", "meta/test.txt", "images/")),
    get="food-101.tar.gz is given away on the page Food-101 of ETH Zurich's Computer Vision Lab.",
    size=Size(classes=101, train=75_750, test=25_250),
)


@register("food101", kind="task", year=2014, companions=PHOTOGRAPHS)
def food101(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Dishes: 75,750 training and 25,250 test photographs, 101 classes.

    Reads ``food-101``: ``meta/classes.txt``, ``meta/train.txt``, ``meta/test.txt`` and ``images``. Some labels of the
    training images are wrong, on purpose.

    Images are kept whole with a short side of `resize`, by default `size`, and tested on their middle square, as in the
    experiments on transfer of "What's in a Loss Function for Image Classification?".

    Differs from the paper: nothing known.

    Licence: the photographs belong to their authors on Foodspotting; for research.

    Reference: Bossard, Guillaumin, Van Gool. Food-101: Mining Discriminative Components with Random Forests. ECCV 2014.
    """
    frame = Frame(size, size if resize is None else resize)
    _, folder, (classes, train, test, _) = FOOD101.find(root)
    base = folder.resolve()
    names = [name for _, (name,) in rows(classes, 1)]
    label_of = {name: label for label, name in enumerate(names)}
    listing = Listing(FOOD101, base, len(names))
    for part, path in (("train", train), ("test", test)):
        for where, (image,) in rows(path, 1):
            name = image.partition("/")[0]
            listing.add(part, where, f"images/{image}.jpg", label_of.get(name, f"class {name}"))
    return source_of_files(base, listing.files(), names, frame)
