"""Your own images: a folder with one folder per class."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core import register
from ...core.escaping import visible
from ...core.words import shown
from ..decode import DataError
from ..frame import Frame
from ..groups import compiled, group_tables, groups_of, named_in
from ..names import PARTS, listed
from ..split import Pools, split_by_class, split_by_group
from ..tables import SUFFIXES as TABLES
from ..tables import images_table
from ..walk import ImageFile, subfolders
from ._base import Source, data_folders
from ._files import Files, chosen, files_of_classes, source_of_files
from ._listed import files_in_table

TEST_SHARE = 0.2
TEST_SEED = 0


@register("folder", kind="task", companions={"augment": "crop_flip"})
def folder(
    path: str,
    size: int = 64,
    resize: int | None = None,
    keep: int | None = None,
    group: str | None = None,
    groups: str | None = None,
    leave_out: str | None = None,
    root: str | Path | None = None,
) -> Source:
    """Your own images: `path` has one folder per class, or `train`, `val` and `test` folders that have one each.

    Or it is a table, CSV or Parquet, that names the images beside it: columns `path` and `label`, perhaps `split`
    (train, val or test) and `group`. A `metadata.csv` of Hugging Face's image folders is such a table.

    The middle square of each image is brought to `size` × `size` pixels and three channels; docs/data.md says how
    16-bit, transparent and turned images are read. With `resize` or `keep` images are kept whole instead, with a short
    side of at most `keep` pixels (by default `resize`). ``augment = "resized_crop"`` then cuts its boxes out of all of
    an image, and the test view is the middle square of `size` of an image whose short side was made `resize` pixels (by
    default `size`). ``folder(path='imagenet', size=224, resize=256)`` is what papers on ImageNet do.

    Folders are classes in the order of their names; names that begin with a dot are passed over, and links that lead
    out of `path` are refused. `val` may be called `valid` or `validation`; it is then the validation set. Without a
    `test` folder 20 % of each class, drawn with a fixed seed, are the test set; a class of a single image keeps it for
    training and is not tested. A relative `path` is looked for beside the study's file, in the working folder, then
    where all data is; with a `root`, below that alone.

    Images that belong together, such as frames of one film, must not be on both sides of a split. `group` is a regular
    expression that is looked for in each path below `path`; images in which its parts in parentheses are the same stay
    on one side of train, validation and test. ``group='(.+)_[0-9]+'`` puts `stop/00012_00003.ppm` with all of
    `stop/00012`. `groups` is a CSV file of paths and groups, such as the one that ``equipoise audit`` writes for
    near-duplicates; `group` may then name its column. Each class keeps its share as nearly as its groups allow.
    `leave_out` is a CSV file of paths that are passed over, such as those of images that cannot be read.

    Training images are shifted and mirrored unless you say otherwise. Where a mirror image is of another class, as
    with signs, letters or left and right, write ``augment = "crop_flip(flip=False)"``, or ``augment = "none"``.

    Differs from the paper: nothing known.

    Reference: none.
    """
    frame = Frame(size, resize, keep)
    check_path(path)
    for name, text in (("group", group), ("groups", groups), ("leave_out", leave_out)):
        if not (text is None or isinstance(text, str)):
            raise ValueError(f"{name} must be text, not {shown(text)}")
    if group is not None:
        compiled(group)
    place = located(Path(path).expanduser(), root).resolve()
    listing = None if groups is None else located(Path(groups).expanduser(), root, "file")
    table = images_table(place)
    base, files, names = _in_folders(place) if table is None else (place.parent, *files_in_table(table))
    if leave_out is not None:
        unwanted = named_in(located(Path(leave_out).expanduser(), root, "file"))
        files = {part: _without(of_part, unwanted, base) for part, of_part in files.items()}
    together, tables = None, group_tables(table, listing, group)
    if group is not None or tables:
        together = groups_of([_name(file, base) for file in files["train"][0]], group, tables)
    if "test" not in files:
        rest, held_out = held_out_of_train(files["train"][1], len(names), together)
        if not sum(map(len, held_out)) and together is not None:
            raise DataError(
                f"the groups of {visible(base)} leave nothing to test on: no class has more than one; make them "
                f"smaller, or put images to test on into {visible(base / 'test')}"
            )
        files["train"], files["test"] = chosen(files["train"], rest), chosen(files["train"], held_out)
        together = None if together is None else together[np.sort(np.concatenate(rest))]
    return source_of_files(base, files, names, frame, groups=together)


def check_path(path: object) -> None:
    """Refuse what is no path, before it is looked for."""
    if not isinstance(path, str) or len(path) > 4_096:  # what Linux takes
        raise ValueError(f"path must be text of at most 4,096 characters, not {shown(path)}")


def located(path: Path, root: str | Path | None, kind: str = "folder") -> Path:
    """Where a folder of classes (or a table), a CSV "file" or a folder of "shards" is, of the places it may be in."""
    places = [parent / path for parent in ([] if root is not None else [Path.cwd()]) + [*data_folders(root)]]
    is_file = kind == "file" or (kind == "folder" and path.suffix.lower() in TABLES)
    for place in places:
        if os.path.isdir(place) if not is_file else os.path.isfile(place):  # Path's raise where a name is too long
            return place
    tried = listed([str(place) for place in dict.fromkeys(places)])
    what, wanted = {
        "folder": ("file" if is_file else "folder", "folder that holds one folder per class, or a table of paths"),
        "file": ("file", "CSV file of paths"),
        "shards": ("folder", "folder that 'equipoise shards' wrote"),
    }[kind]
    raise DataError(f"{visible(path)} is not a {what}; give the {wanted}. Looked for {tried}.")


def _in_folders(place: Path) -> tuple[Path, dict[str, Files], tuple[str, ...]]:
    """The folder that all images are in, the files of each part, and the class names."""
    parts = parts_of(place)
    names = class_names_of(parts["train"], place)
    return place, {part: files_of_classes(own, place, names) for part, own in parts.items()}, names


def _without(files: Files, unwanted: Container[str], base: Path) -> Files:
    kept = np.array([i for i, file in enumerate(files[0]) if _name(file, base) not in unwanted], np.int64)
    return chosen(files, [kept])


def _name(file: ImageFile, base: Path) -> str:
    return file.path.relative_to(base).as_posix()


def parts_of(base: Path) -> dict[str, Path]:
    """The folder of each part: all of `base` for "train", or the folders that are called by the names of parts."""
    there = subfolders(base, base)
    named = {name: PARTS[name.lower()] for name in there if name.lower() in PARTS}
    others = [name for name in there if name not in named]
    if not named or (others and set(named.values()) == {"train"}):  # a class may be called train
        return {"train": base}
    what = f"{visible(base)} has {listed(list(named))}"
    if "train" not in named.values():
        beside = f" beside {listed(others)}" if others else ""
        raise DataError(
            f"{what}{beside} and no train folder: put the classes to train on into {visible(base / 'train')}"
        )
    if len(set(named.values())) < len(named):
        raise DataError(f"{what}, two names of one part: take one away")
    return {part: base / name for name, part in named.items()}


def class_names_of(place: Path, base: Path) -> tuple[str, ...]:
    names = tuple(subfolders(place, base))
    if len(names) < 2:
        count = "1 folder" if len(names) == 1 else f"{len(names)} folders"
        raise DataError(f"{visible(place)} has {count}; a class is a folder of images, and two are needed")
    return names


def held_out_of_train(
    labels: NDArray[np.int64], num_classes: int, groups: NDArray[np.int64] | None = None
) -> tuple[Pools, Pools]:
    """Indices of training and test images of each class, where there is no test folder."""
    if groups is None:
        held_out, rest = split_by_class(labels, num_classes, TEST_SHARE, TEST_SEED)
    else:
        held_out, rest = split_by_group(labels, groups, num_classes, TEST_SHARE, TEST_SEED)
    return rest, held_out
