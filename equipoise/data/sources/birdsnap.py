"""Birdsnap, with its own test images."""

from __future__ import annotations

import csv
from pathlib import Path

from ...core import register
from ..frame import Frame
from ._base import Source, damaged
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing, read_text
from ._official import Layout, Size, official

LISTS = ("species.txt", "images.txt", "test_images.txt")
BIRDSNAP = official(
    "birdsnap",
    Layout("birdsnap", (*LISTS, "images/")),
    Layout("birdsnap", (*LISTS, "download/images/")),
    get="The lists, and get_birdsnap.py, which fetches the images, are given away on the page Birdsnap of Thomas Berg.",
    size=Size(classes=500, train=47_386, test=2_443),
)


@register("birdsnap", kind="task", year=2014, companions=PHOTOGRAPHS)
def birdsnap(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Birds of 500 North American species: 47,386 training and 2,443 test photographs.

    Reads release 1.1: ``species.txt``, ``images.txt``, ``test_images.txt`` and ``images``, or ``download/images``,
    where ``get_birdsnap.py`` puts them. It fetches photographs from Flickr, where many are gone: those that are not
    there are left out, and the run says how many there are.

    Images are kept whole with a short side of `resize`, by default `size`, and tested on their middle square, as in the
    experiments on transfer of "What's in a Loss Function for Image Classification?".

    Differs from the paper: images that are gone; bounding boxes and parts are not used.

    Licence: the photographs belong to their authors on Flickr; for research.

    Reference: Berg, Liu, Lee, Alexander, Jacobs, Belhumeur. Birdsnap: Large-scale Fine-grained Visual Categorization of
    Birds. CVPR 2014.
    """
    frame = Frame(size, size if resize is None else resize)
    _, folder, (species, images, test, place) = BIRDSNAP.find(root)
    base, prefix = folder.resolve(), place.relative_to(folder)
    names = [row["common"] for row in _table(species, "id", "common")]
    tested = {row["path"] for row in _table(test, "path")}
    lines = _table(images, "path", "species_id")
    if strange := sorted(tested - {row["path"] for row in lines}):
        raise damaged(test, f"images of {images.name}", ", ".join(strange[:5]))
    listing = Listing(BIRDSNAP, base, len(names), first=1)
    for number, row in enumerate(lines, 2):
        part = "test" if row["path"] in tested else "train"
        where = f"{images.name}, line {number}"
        listing.add(part, where, f"{prefix}/{row['path']}", row["species_id"], optional=True)
    return source_of_files(base, listing.files(), names, frame)


def _table(path: Path, *columns: str) -> list[dict[str, str]]:
    """The lines of a table whose first line names its columns, separated by tabs."""
    reader = csv.DictReader(read_text(path).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    found = list(reader)
    if not set(columns) <= set(reader.fieldnames or ()):
        raise damaged(path, f"the columns {', '.join(columns)}", ", ".join(reader.fieldnames or ["none"]))
    for number, row in enumerate(found, 2):
        if any(row[column] is None for column in columns):
            raise damaged(path, f"{', '.join(columns)} in every line", f"too few fields in line {number}")
    return found
