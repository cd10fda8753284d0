"""Images that a table names: the path and label of each, perhaps its part and its group."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np

from ...core.escaping import visible
from ..decode import SUFFIXES, DataError
from ..names import PARTS, listed
from ..tables import LABEL, PART, PATH, Table, column_of, find_column
from ..walk import ImageFile
from ._files import Files


def files_in_table(table: Table) -> tuple[dict[str, Files], tuple[str, ...]]:
    """The files of each part, by class and name as those of a folder are, and the class names.

    The table is one of `images_table`. Everything that is in the way is told at once.
    """
    paths, labels = table.column(column_of(table, PATH)), table.column(column_of(table, LABEL))
    split = find_column(table, PART)
    parts = table.column(split) if split is not None else ["train"] * len(paths)
    number = {name: i for i, name in enumerate(sorted({*labels}))}
    found: dict[str, list[tuple[int, str, ImageFile]]] = {}
    problems, seen = [], set()
    for path, label, part in zip(paths, labels, parts, strict=True):
        file = _file(table.path.parent, path)
        if isinstance(file, str) or path in seen or not label or part.lower() not in PARTS:
            why = file if isinstance(file, str) else _mistake(path in seen, label, part)
            problems.append(f"{path} {why}")
        else:
            found.setdefault(PARTS[part.lower()], []).append((number[label], path, file))
        seen.add(path)
    if problems:
        raise DataError(
            f"{visible(table.path)} names what cannot be used; correct these lines, or take them away:\n  "
            f"{listed(problems, separator=chr(10) + '  ')}"
        )
    if "train" not in found or len(number) < 2:
        raise DataError(f"{visible(table.path)} must name training images of two classes or more")
    return {part: _in_order(rows) for part, rows in found.items()}, tuple(number)


def _in_order(rows: list[tuple[int, str, ImageFile]]) -> Files:
    rows = sorted(rows, key=lambda row: row[:2])
    return [file for _, _, file in rows], np.array([label for label, _, _ in rows], np.int64)


def _file(folder: Path, path: str) -> ImageFile | str:
    """The file, or why it is none to be read; nothing outside the folder is looked at."""
    place = folder / path
    try:
        if not Path(os.path.realpath(place)).is_relative_to(folder.resolve()):
            return f"leads out of {folder}"
        found = os.stat(place)
    except (OSError, ValueError):
        return "is not there"
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if place.suffix.lower() not in SUFFIXES:
        return f"is of no format that is read: {', '.join(sorted(SUFFIXES))}"
    return ImageFile(place, found)


def _mistake(twice: bool, label: str, part: str) -> str:
    if twice:
        return "is named twice"
    return f"has the part {part!r}, not train, val or test" if label else "has no label"
