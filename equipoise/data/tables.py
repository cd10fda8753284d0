"""Lists of images as people keep them: CSV, or Parquet where pyarrow is installed, with a header."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ..core.escaping import visible
from .decode import DataError
from .names import listed

# what columns are called; the first that a file has is meant
PATH = ("path", "file_name", "filename", "file", "image", "image_path")  # Hugging Face: file_name
LABEL = ("label", "class", "class_name", "category", "target")
PART = ("split", "part", "subset")
SUFFIXES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Table:
    """The cells of a file as text, by row."""

    path: Path
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]

    def column(self, name: str) -> list[str]:
        if name not in self.columns:
            raise DataError(f"{visible(self.path)} has no column {name!r}; it has {listed(list(self.columns))}")
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


def read_table(path: Path) -> Table:
    """All of a file; every wrong line of a CSV is an error."""
    if path.suffix.lower() == ".parquet":
        return _parquet(path)
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{visible(path)} is no table: give a file that ends in {', '.join(SUFFIXES)}")
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            lines = list(csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
    except (OSError, csv.Error) as error:
        raise DataError(f"{visible(path)} cannot be read as a table: {error}") from None
    lines = [line for line in lines if line]
    if not lines:
        raise DataError(f"{visible(path)} is empty; its first line must name the columns, such as path,label")
    columns, rows = tuple(name.strip() for name in lines[0]), lines[1:]
    wrong = [str(n) for n, row in enumerate(rows, 2) if len(row) != len(columns)]
    if wrong:
        raise DataError(
            f"{visible(path)} has {len(columns)} columns, and other numbers of cells in row {listed(wrong)}; a cell "
            "with a comma must be in quotation marks"
        )
    return Table(path, columns, rows)


def images_table(path: Path) -> Table | None:
    """The table that names images, with paths relative to where it lies; None where `path` is a folder."""
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return None
    table = read_table(path)
    place = table.columns.index(column_of(table, PATH))
    rows = [[*row[:place], _relative(row[place], path.resolve().parent), *row[place + 1 :]] for row in table.rows]
    return Table(path, table.columns, rows)


def _relative(given: str, folder: Path) -> str:
    """One spelling of a path, however it is written."""
    try:
        place = os.path.realpath(given) if os.path.isabs(given) else os.path.normpath(folder / given)
        return Path(os.path.relpath(place, folder)).as_posix()
    except ValueError:  # it is no path
        return given


def column_of(table: Table, names: Sequence[str]) -> str:
    """The first of `names` that the table has, whatever its case."""
    return find_column(table, names) or _lacks(table, names)


def find_column(table: Table, names: Sequence[str]) -> str | None:
    there = {column.lower(): column for column in reversed(table.columns)}
    return next((there[name] for name in names if name in there), None)


def _lacks(table: Table, names: Sequence[str]) -> str:
    there = listed(list(table.columns))
    raise DataError(f"{visible(table.path)} has the columns {there}; one of them must be called {listed([*names])}")


def _parquet(path: Path) -> Table:
    try:
        found = import_module("pyarrow.parquet").read_table(path)
    except ImportError:
        raise DataError(f"reading {visible(path)} needs pyarrow: pip install pyarrow, or save it as CSV") from None
    except Exception as error:  # a damaged file may raise almost anything
        raise DataError(f"{visible(path)} cannot be read as Parquet: {error}") from None
    texts = [["" if cell is None else str(cell) for cell in column.to_pylist()] for column in found.columns]
    return Table(path, tuple(found.column_names), list(zip(*texts, strict=True)))
