"""Lists of images, as most published sets have them: read line by line; what is wrong with them is told at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...core.escaping import visible
from ..decode import DataError
from ..names import listed
from ..walk import ImageFile
from ._base import damaged, read_bytes
from ._files import Files
from ._official import Official


def read_text(path: Path) -> str:
    """The content of a text file."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(path, "text in UTF-8", str(error)) from None


def rows(path: Path, fields: int, separator: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """Each line that is not empty: its place, for messages, and its fields; the first one may hold separators."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            values = line.strip().rsplit(separator, fields - 1)
            if len(values) != fields:
                raise damaged(path, f"{fields} fields in every line", f"{len(values)} in line {number}")
            yield f"{path.name}, line {number}", values


MISSING = "is not there"


class Listing:
    """The images of a set that its lists name, and all that is wrong with them.

    Args:
        task: whose lists they are.
        base: the folder that the names are relative to; images must lie inside it.
        num_classes: labels run over so many numbers.
        first: the label of the first class in the files; it becomes 0.
    """

    def __init__(self, task: Official, base: Path, num_classes: int, first: int = 0) -> None:
        self.task, self.base, self.num_classes, self.first = task, base.resolve(), num_classes, first
        self.found: dict[str, tuple[list[ImageFile], list[int]]] = {}
        self.problems: list[str] = []
        self._named: dict[str, str] = {}  # image -> the line that names it
        self._inside: dict[str, bool] = {}  # folder -> whether it really lies below the base

    def add(self, part: str, where: str, name: str, label: int | str, optional: bool = False) -> None:
        """The image `name` of a class, as the line `where` says; an `optional` one may be missing."""
        last = self.first + self.num_classes - 1
        number = _number(label)
        if number is None or not self.first <= number <= last:
            self.problems.append(f"{where}: expected a label from {self.first} to {last}, got {label}")
        elif name in self._named:
            self.problems.append(f"{where}: {name} is already in {self._named[name]}")
        elif (problem := self._find(part, name, number - self.first)) and not (optional and problem == MISSING):
            self.problems.append(f"{where}: {name} {problem}")
        self._named.setdefault(name, where)

    def files(self) -> dict[str, Files]:
        """The images of every part; where anything is wrong, one error tells all of it."""
        if self.problems:
            lines = listed(self.problems, separator="\n  ")
            again = f"Copy or unpack the set again. {self.task.get}"
            raise DataError(f"the lists of {self.task.task} do not fit {visible(self.base)}:\n  {lines}\n{again}")
        return {part: (files, np.array(labels, np.int64)) for part, (files, labels) in self.found.items()}

    def _find(self, part: str, name: str, label: int) -> str | None:
        """Take the image into its part, or say what is wrong with it."""
        path = self.base / name
        try:
            status = os.lstat(path)
            if not self._is_inside(path.parent) or (stat.S_ISLNK(status.st_mode) and not self._is_inside(path)):
                return "leads out of the folder"
            status = os.stat(path)
        except (OSError, ValueError):  # a name may hold what no path can
            return MISSING
        if not stat.S_ISREG(status.st_mode):
            return "is not a regular file"
        files, labels = self.found.setdefault(part, ([], []))
        files.append(ImageFile(path, status))
        labels.append(label)
        return None

    def _is_inside(self, path: Path) -> bool:
        key = str(path)
        if key not in self._inside:
            self._inside[key] = Path(os.path.realpath(path)).is_relative_to(self.base)
        return self._inside[key]


def _number(label: int | str) -> int | None:
    try:
        return int(label)
    except ValueError:
        return None
