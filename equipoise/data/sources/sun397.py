"""SUN397, with the first of its ten splits."""

from __future__ import annotations

from pathlib import Path

from ...core import register
from ..frame import Frame
from ._base import Source
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing, rows
from ._official import Layout, Size, official

LISTS = ("ClassName.txt", "Training_01.txt", "Testing_01.txt")
SUN397 = official(
    "sun397",
    Layout("SUN397", LISTS),
    Layout("SUN397", tuple(f"Partitions/{name}" for name in LISTS)),
    get="SUN397.tar.gz and Partitions.zip are given away on the page SUN Database: Scene Categorization Benchmark.",
    size=Size(classes=397, train=19_850, test=19_850),
)


@register("sun397", kind="task", year=2010, companions=PHOTOGRAPHS)
def sun397(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Scenes, indoors and outdoors: 19,850 training and 19,850 test photographs, 397 classes.

    Reads ``SUN397`` with ``ClassName.txt``, ``Training_01.txt`` and ``Testing_01.txt``, or with these in
    ``Partitions``: the first of the ten official splits, as papers on transfer take it, with 50 training and 50 test
    images of each class.

    Images are kept whole with a short side of `resize`, by default `size`, and tested on their middle square, as in the
    experiments on transfer of "What's in a Loss Function for Image Classification?".

    Differs from the paper: it takes the mean over the ten splits.

    Licence: for research.

    Reference: Xiao, Hays, Ehinger, Oliva, Torralba. SUN Database: Large-scale Scene Recognition from Abbey to Zoo.
    CVPR 2010.
    """
    frame = Frame(size, size if resize is None else resize)
    _, folder, (classes, train, test) = SUN397.find(root)
    base = folder.resolve()
    names = [name.strip("/") for _, (name,) in rows(classes, 1)]  # /a/apartment_building/outdoor
    label_of = {name: label for label, name in enumerate(names)}
    listing = Listing(SUN397, base, len(names))
    for part, path in (("train", train), ("test", test)):
        for where, (image,) in rows(path, 1):
            name = image.strip("/").rpartition("/")[0]
            listing.add(part, where, image.strip("/"), label_of.get(name, f"class {name}"))
    return source_of_files(base, listing.files(), names, frame)
