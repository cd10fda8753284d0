"""ImageNet-LT and Places-LT: lists of the images of ImageNet and Places365 that make them long-tailed."""

from __future__ import annotations

from pathlib import Path

from ...core import register
from ...core.escaping import visible
from ..decode import DataError
from ..frame import Frame, frame_of_photographs
from ._base import Source, damaged, data_folders
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing, rows
from ._official import Layout, Official, Size, official

GET = "The lists are given away with the code of Large-Scale Long-Tailed Recognition in an Open World;"
PARTS = {"train": "train", "val": "valid", "test": "test"}  # in the names of lists -> here
IMAGENET_LT = official(
    "imagenet_lt",
    Layout("ImageNet_LT", tuple(f"ImageNet_LT_{part}.txt" for part in PARTS)),
    get=f"{GET} the images are ImageNet's (ILSVRC 2012).",
    size=Size(classes=1_000, train=115_846, valid=20_000, test=50_000),
)
PLACES_LT = official(
    "places_lt",
    Layout("Places_LT", tuple(f"Places_LT_{part}.txt" for part in PARTS)),
    get=f"{GET} the images are those of Places365-Standard, 256 × 256, on the page of Places at MIT.",
    size=Size(classes=365, train=62_500, valid=7_300, test=36_500),
)
# where the images may lie, below a folder of data
IMAGENET_FOLDERS = ("imagenet", "imagenet/ILSVRC/Data/CLS-LOC", "ILSVRC/Data/CLS-LOC", "")
PLACES_FOLDERS = ("places365_standard", "places365", "Places", "")

Row = tuple[str, list[str]]


@register("imagenet_lt", kind="task", year=2019, arxiv="1904.05160", companions=PHOTOGRAPHS)
def imagenet_lt(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """ImageNet-LT: 115,846 training, 20,000 validation and 50,000 test photographs, a thousand classes of 5 to 1,280.

    Reads ``ImageNet_LT_train.txt``, ``ImageNet_LT_val.txt`` and ``ImageNet_LT_test.txt``, whose lines are a path and a
    label, and ImageNet's images in ``train`` and ``val``, beside the lists or where `imagenet` is found; ``val`` may
    have one folder per class or none. The validation images are balanced, and are ImageNet's training images.

    Images are kept whole with a short side of `resize`, by default 8/7 of `size`, and tested on their middle square.

    Differs from the paper: nothing known.

    Licence: that of ImageNet, for non-commercial research.

    Reference: Liu, Miao, Zhan, Wang, Gong, Yu. Large-Scale Long-Tailed Recognition in an Open World. CVPR 2019.
    """
    return _read(IMAGENET_LT, IMAGENET_FOLDERS, frame_of_photographs(size, resize), root)


@register("places_lt", kind="task", year=2019, arxiv="1904.05160", companions=PHOTOGRAPHS)
def places_lt(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Places-LT: 62,500 training, 7,300 validation and 36,500 test photographs of 365 kinds of scene, 5 to 4,980 each.

    Reads ``Places_LT_train.txt``, ``Places_LT_val.txt`` and ``Places_LT_test.txt``, whose lines are a path and a label,
    and the images of Places365-Standard beside the lists or in ``places365_standard``, in the folders that the lists
    name (``train`` and ``val``, or ``data_256`` and ``val_256``).

    Images are kept whole with a short side of `resize`, by default 8/7 of `size`, and tested on their middle square.

    Differs from the paper: nothing known.

    Licence: that of Places, for non-commercial research.

    Reference: Liu, Miao, Zhan, Wang, Gong, Yu. Large-Scale Long-Tailed Recognition in an Open World. CVPR 2019.
    """
    return _read(PLACES_LT, PLACES_FOLDERS, frame_of_photographs(size, resize), root)


def _read(task: Official, folders: tuple[str, ...], frame: Frame, root: str | Path | None) -> Source:
    _, place, paths = task.find(root)
    named = {part: list(rows(path, 2)) for part, path in zip(PARTS.values(), paths, strict=True)}
    names = _class_names(paths[0], named["train"])
    base = _folder_of_images(task, paths[0], named["train"], [place, *_below(folders, root)])
    listing = Listing(task, base, len(names))
    for part, lines in named.items():
        for where, (image, label) in lines:
            listing.add(part, where, _as_it_lies(base, image), label)
    return source_of_files(base, listing.files(), names, frame, task.task)


def _class_names(path: Path, lines: list[Row]) -> list[str]:
    """Folders by label: ``train/n01440764/n01440764_3198.JPEG 0`` says that class 0 is n01440764."""
    folder_of: dict[str, str] = {}
    for where, (image, label) in lines:
        folder = "/".join(image.split("/")[1:-1])
        if folder_of.setdefault(label, folder) != folder:
            raise damaged(path, f"label {label} for images of {folder_of[label]} alone", f"{folder} in {where}")
    return [folder_of.get(str(label), str(label)) for label in range(len(folder_of))]


def _below(folders: tuple[str, ...], root: str | Path | None) -> list[Path]:
    return [base / folder for base in data_folders(root) for folder in folders]


def _folder_of_images(task: Official, path: Path, lines: list[Row], places: list[Path]) -> Path:
    """The first of `places` that has the folder with which the first line begins."""
    top = lines[0][1][0].split("/")[0] if lines else "train"
    for place in places:
        if (place / top).is_dir():
            return place.resolve()
    raise DataError(
        f"the images that {visible(path)} names were not found: put the folder {visible(top)} beside the list, or into "
        f"{places[1]}. {task.get}"
    )


def _as_it_lies(base: Path, image: str) -> str:
    """Without its class folder where images were not sorted into any, as ImageNet's validation images are packed."""
    parts = image.split("/")
    if len(parts) == 3 and parts[0] == "val" and not (base / "val" / parts[1]).is_dir():
        return f"val/{parts[2]}"
    return image
