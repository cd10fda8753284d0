"""Which images there are, of which class and part: from a folder with one folder per class, or from a table."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.escaping import visible
from ..data import DataError
from ..data.decode import SUFFIXES
from ..data.groups import GROUP, compiled, key_of
from ..data.names import PARTS
from ..data.sources.folder import parts_of
from ..data.tables import LABEL, PART, PATH, Table, column_of, find_column, read_table
from ..data.tables import SUFFIXES as TABLES
from ..data.walk import subfolders, survey

METADATA = "metadata.csv"  # of the image folders of Hugging Face
NO_CLASS = -1

_CONVERT = "save it as JPEG or PNG, e.g. `magick mogrify -format jpg *{suffix}`"
_CAMERA = "develop it to JPEG or TIFF, e.g. with darktable or `magick mogrify -format jpg *{suffix}`"
# images that are not read, by the ends of their names: what they are, and what to do
FOREIGN = {
    ".heic": ("HEIC", _CONVERT + "; phones can be set to save JPEG"),
    ".heif": ("HEIF", _CONVERT),
    ".avif": ("AVIF", _CONVERT),
    ".jxl": ("JPEG XL", _CONVERT),
    ".jp2": ("JPEG 2000", _CONVERT),
    ".psd": ("Photoshop", _CONVERT),
    ".svg": ("SVG", "draw it at the size you need, e.g. `magick in.svg out.png`"),
    ".dcm": ("DICOM", "save it as 16-bit PNG with one window for all images, e.g. with pydicom"),
    ".nii": ("NIfTI", "save its slices as 16-bit PNG with one window for all images, e.g. with nibabel"),
    ".ico": ("icon", _CONVERT),
    ".tga": ("Targa", _CONVERT),
    ".jfif": ("JPEG", "rename it to .jpg"),
    **dict.fromkeys((".cr2", ".cr3", ".nef", ".arw", ".dng", ".raf", ".orf", ".rw2", ".raw"), ("camera raw", _CAMERA)),
}


@dataclass(frozen=True)
class Item:
    """An image file: its path, its name below the folder, its part and its class, and its group where one is known."""

    path: Path
    name: str
    part: str
    label: int
    group: str | None = None


@dataclass
class Listing:
    """All images of a folder. `problems` are sentences on what is in the way, `foreign` files of formats not read."""

    base: Path
    items: list[Item] = field(default_factory=list)
    class_names: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    foreign: list[tuple[str, str]] = field(default_factory=list)

    @property
    def parts(self) -> list[str]:
        """Those that have images, train first."""
        there = {item.part for item in self.items}
        return [part for part in ("train", "valid", "test") if part in there]


def list_images(path: Path, group: str | None = None) -> Listing:
    """What there is below a folder, or in a table of paths and labels. Whatever is wrong is noted and passed over.

    `group` is a regular expression on names; a table may have a column for groups.
    """
    path = path.expanduser()
    if not os.path.exists(path):  # Path.exists raises where a name is too long
        raise DataError(
            f"{visible(path)} is not there; give a folder with one folder per class, or a CSV of path and label"
        )
    if path.is_dir():
        listing = _of_folder(path.resolve())
    elif path.suffix.lower() in TABLES:
        listing = Listing(path.resolve().parent)
        _add_table(listing, read_table(path.resolve()), "train")
    else:
        raise DataError(f"{visible(path)} is no folder and no table ({', '.join(TABLES)}); give one of them")
    if group is not None:
        _set_groups(listing, group)
    listing.items.sort(key=lambda item: item.name)
    return listing


def remedy(suffix: str) -> str:
    """What a file of a foreign format is, and what to do.

    >>> remedy(".heif")
    'HEIF: save it as JPEG or PNG, e.g. `magick mogrify -format jpg *.heif`'
    """
    what, how = FOREIGN[suffix]
    return f"{what}: {how.format(suffix=suffix)}"


def _of_folder(base: Path) -> Listing:
    listing = Listing(base)
    parts = _parts(listing)
    tables = {part: read_table(place / METADATA) for part, place in parts.items() if (place / METADATA).is_file()}
    tables = {part: table for part, table in tables.items() if find_column(table, LABEL)}  # others have captions
    for part, table in tables.items():
        _add_table(listing, table, part)
    folders = {part: place for part, place in parts.items() if part not in tables}
    names: dict[str, None] = {}
    for place in folders.values():
        names |= dict.fromkeys(_folders(listing, place))
    listing.class_names = listing.class_names or tuple(sorted(names))
    for part, place in folders.items():
        _add_folder(listing, part, place)
    return listing


def _parts(listing: Listing) -> dict[str, Path]:
    """The folders of train, validation and test. What a task would refuse is noted."""
    base = listing.base
    try:
        return parts_of(base)
    except DataError as error:
        listing.problems.append(str(error))
    there = _folders(listing, base)
    if all(name.lower() in PARTS for name in there):
        return {PARTS[name.lower()]: base / name for name in there} or {"train": base}
    return {"train": base}


def _folders(listing: Listing, place: Path) -> list[str]:
    try:
        return subfolders(place, listing.base)
    except DataError as error:
        if str(error) not in listing.problems:
            listing.problems.append(str(error))
    try:
        with os.scandir(place) as entries:  # those that are surely inside
            return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith("."))
    except OSError:
        return []


def _add_folder(listing: Listing, part: str, place: Path) -> None:
    of_class = {name: label for label, name in enumerate(listing.class_names)}
    files, problems = survey(place, listing.base, SUFFIXES | FOREIGN.keys())
    listing.problems += [problem for problem in map(visible, problems) if problem not in listing.problems]
    for file in files:
        name = file.path.relative_to(listing.base).as_posix()
        if (suffix := file.path.suffix.lower()) in FOREIGN:
            listing.foreign.append((name, remedy(suffix)))
            continue
        inside = file.path.relative_to(place.resolve()).parts
        label = of_class.get(inside[0], NO_CLASS) if len(inside) > 1 else NO_CLASS
        listing.items.append(Item(file.path, name, part, label))


def _add_table(listing: Listing, table: Table, part: str) -> None:
    """The images that a table names; paths are relative to where it lies, and may not leave the folder."""
    labels = table.column(column_of(table, LABEL))
    listing.class_names = tuple(sorted({*listing.class_names, *labels} - {""}))
    of_class = {name: label for label, name in enumerate(listing.class_names)}
    paths = table.column(column_of(table, PATH))
    groups = _optional(table, (GROUP,)) or [""] * len(paths)
    parts = _optional(table, PART) or [part] * len(paths)
    seen: dict[str, str] = {}
    for given, label, group, own in zip(paths, labels, groups, parts, strict=True):
        path = _inside(listing, table.path.parent, given)
        if path is None:
            continue
        name = path.relative_to(listing.base).as_posix()
        if name in seen:
            listing.problems.append(
                f"{visible(table.path)} names {visible(name)} twice, as {seen[name]!r} and {label!r}"
            )
        elif (suffix := path.suffix.lower()) in FOREIGN:
            listing.foreign.append((name, remedy(suffix)))
        else:
            known = PARTS.get(own.lower(), part)
            listing.items.append(Item(path, name, known, of_class.get(label, NO_CLASS), group or None))
        seen[name] = label


def _optional(table: Table, names: tuple[str, ...]) -> list[str] | None:
    found = find_column(table, names)
    return None if found is None else table.column(found)


def _inside(listing: Listing, folder: Path, given: str) -> Path | None:
    """The file that a table means, if it is there and inside; nothing outside is looked at."""
    try:
        path = Path(os.path.realpath(folder / posixpath.normpath(given)))
        if not path.is_relative_to(listing.base):
            listing.problems.append(f"{visible(given)} leads out of {visible(listing.base)}; copy it there")
        elif not path.is_file():
            listing.problems.append(f"{visible(given)} is named by the table and is no file")
        else:
            return path
    except (OSError, ValueError):
        listing.problems.append(f"{visible(given)} is no path")
    return None


def _set_groups(listing: Listing, group: str) -> None:
    pattern = compiled(group)
    listing.items = [replace(item, group=group_name(item.name, pattern)) for item in listing.items]


def group_name(name: str, pattern: re.Pattern[str]) -> str | None:
    """The group of an image as text."""
    key = key_of(name, pattern)
    return None if key is None else " · ".join(part or "" for part in key)
