"""iNaturalist 2017 and 2018, as the competitions give them away."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ...core import register
from ..frame import Frame, frame_of_photographs
from ._base import Source, damaged
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing, read_text
from ._official import Layout, Official, Size, official

GET = "They are given away on the pages of the iNaturalist competitions (inat_comp)."
INATURALIST2017 = official(
    "inaturalist2017",
    Layout("", ("train2017.json", "val2017.json", "train_val_images/")),
    get=GET,
    size=Size(classes=5_089, train=579_184, test=95_986),
)
INATURALIST2018 = official(
    "inaturalist2018",
    Layout("", ("train2018.json", "val2018.json", "train_val2018/")),
    get=GET,
    size=Size(classes=8_142, train=437_513, test=24_426),
)


@register("inaturalist2017", kind="task", year=2017, arxiv="1707.06642", companions=PHOTOGRAPHS)
def inaturalist2017(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Plants and animals in the wild: 579,184 training and 95,986 test photographs, 5,089 classes, long-tailed.

    Reads ``train2017.json``, ``val2017.json`` and the images in ``train_val_images``. The official test images have no
    labels, so the validation images are the test set, as in all papers here.

    Images are kept whole with a short side of `resize`, by default 8/7 of `size`, and tested on their middle square.

    Differs from the paper: nothing known.

    Licence: for non-commercial research and education.

    Reference: Van Horn, Mac Aodha, Song, Cui, Sun, Shepard, Adam, Perona, Belongie. The iNaturalist Species
    Classification and Detection Dataset. CVPR 2018.
    """
    return _read(INATURALIST2017, frame_of_photographs(size, resize), root)


@register("inaturalist2018", kind="task", year=2018, arxiv="1707.06642", companions=PHOTOGRAPHS)
def inaturalist2018(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Plants and animals in the wild: 437,513 training and 24,426 test photographs, 8,142 classes, long-tailed.

    Reads ``train2018.json``, ``val2018.json`` and the images in ``train_val2018``. The official test images have no
    labels, so the validation images, three of each class, are the test set, as in all papers here.

    Images are kept whole with a short side of `resize`, by default 8/7 of `size`, and tested on their middle square.

    Differs from the paper: the paper describes the set of 2017; this is that of the competition of 2018.

    Licence: for non-commercial research and education.

    Reference: Van Horn, Mac Aodha, Song, Cui, Sun, Shepard, Adam, Perona, Belongie. The iNaturalist Species
    Classification and Detection Dataset. CVPR 2018.
    """
    return _read(INATURALIST2018, frame_of_photographs(size, resize), root)


def _read(task: Official, frame: Frame, root: str | Path | None) -> Source:
    _, folder, (train, val, _) = task.find(root)
    base, tables = folder.resolve(), {"train": (train, _table(train)), "test": (val, _table(val))}
    category_names = dict(sorted(tables["train"][1][0].items()))
    label_of = {identifier: label for label, identifier in enumerate(category_names)}
    listing = Listing(task, base, len(category_names))
    for part, (path, (_, images, labelled)) in tables.items():
        for number, (image, category) in enumerate(labelled, 1):
            name = images.get(image, f"image {image}")
            label = label_of.get(category, f"category {category}")
            listing.add(part, f"{path.name}, annotation {number}", name, label)
    return source_of_files(base, listing.files(), _distinct(category_names), frame)


Table = tuple[dict[int, str], dict[int, str], list[tuple[int, int]]]


def _table(path: Path) -> Table:
    """Category -> name, image -> file, and (image, category) of each annotation."""
    try:
        content: dict[str, Any] = json.loads(read_text(path))
        return (
            {int(category["id"]): str(category["name"]) for category in content["categories"]},
            {int(image["id"]): str(image["file_name"]) for image in content["images"]},
            [(int(each["image_id"]), int(each["category_id"])) for each in content["annotations"]],
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        expected = "JSON with categories, images and annotations"
        raise damaged(path, expected, f"{type(error).__name__}: {error}") from None


def _distinct(names: dict[int, str]) -> list[str]:
    """Names that several categories share are told apart by their numbers."""
    times = Counter(names.values())
    return [f"{name} ({identifier})" if times[name] > 1 else name for identifier, name in names.items()]
