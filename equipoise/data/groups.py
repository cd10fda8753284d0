"""Images that belong together: frames of one film, photographs of one patient, near-duplicates.

Those on both sides of a split would make a test too easy: the network has seen almost the same image in training.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.escaping import visible
from .decode import DataError
from .names import listed
from .tables import PATH, Table, column_of, read_table

GROUP = "group"  # the column that a file of groups has, unless another is asked for


def groups_of(names: Sequence[str], pattern: str | None, tables: Sequence[Table]) -> NDArray[np.int64]:
    """The number of each image's group, from 0; an image of no group is one of its own.

    `names` are paths below the task's folder. `pattern` is a regular expression or, where one of `tables` has such a
    column, its name. Images that any of them puts together stay together.
    """
    told: list[list[Hashable | None]] = []
    for table in tables:
        named = pattern if pattern in table.columns else GROUP
        told.append(_from_table(names, table.column(named), table.column(column_of(table, PATH)), table.path))
    if pattern is not None and not any(pattern in table.columns for table in tables):
        told.append(_from_pattern(names, pattern))
    return merged(len(names), told)


def group_tables(images: Table | None, listing: Path | None, pattern: str | None) -> list[Table]:
    """The tables that tell groups: a `listing` of them, and the one that names the `images` if it has such a column."""
    tables = [] if listing is None else [read_table(listing)]
    return tables if images is None or not {pattern, GROUP} & {*images.columns} else [*tables, images]


def named_in(file: Path) -> set[str]:
    """The paths that a table names."""
    table = read_table(file)
    return {posixpath.normpath(path) for path in table.column(column_of(table, PATH))}


def merged(number: int, told: Iterable[Sequence[Hashable | None]]) -> NDArray[np.int64]:
    """Groups in which images are that share a key with one another in any list of `told`; None is no key.

    >>> merged(5, [["a", "b", None, "a", None], [None, 1, 1, None, None]]).tolist()
    [0, 1, 1, 0, 2]
    """
    parent = list(range(number))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for keys in told:
        first: dict[Hashable, int] = {}
        for i, key in enumerate(keys):
            if key is not None:
                a, b = root(first.setdefault(key, i)), root(i)
                parent[max(a, b)] = min(a, b)
    _, numbered = np.unique([root(i) for i in range(number)], return_inverse=True)
    return numbered.reshape(-1).astype(np.int64)


def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression for groups, or an error that says what is wrong with it."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise DataError(
            f"group = {pattern!r} is no regular expression ({error}); write e.g. group = '(.+)_[0-9]+' to put "
            "together what has the same name before the last number"
        ) from None


def key_of(name: str, pattern: re.Pattern[str]) -> tuple[str | None, ...] | None:
    r"""What `pattern` finds in a path: the parts in parentheses, or all of it where there are none.

    >>> key_of("stop/00012_00003.ppm", re.compile(r"(.+)_\d+")), key_of("stop/x.ppm", re.compile(r"(.+)_\d+"))
    (('stop/00012',), None)
    """
    found = pattern.search(name)
    return None if found is None else found.groups() or (found.group(),)


def _from_pattern(names: Sequence[str], pattern: str) -> list[Hashable | None]:
    finds = compiled(pattern)
    keys: list[Hashable | None] = [key_of(name, finds) for name in names]
    if names and not any(keys):
        raise DataError(
            f"group = {pattern!r} is found in none of {len(names):,} paths, such as {visible(names[0])}; correct it, "
            "or leave it out"
        )
    return keys


def _from_table(names: Sequence[str], groups: Sequence[str], paths: Sequence[str], file: Path) -> list[Hashable | None]:
    of = {posixpath.normpath(path): group for path, group in zip(paths, groups, strict=True) if group != ""}
    keys: list[Hashable | None] = [of.get(name) for name in names]
    if of and not any(keys):
        raise DataError(
            f"{visible(file)} names none of the training images, which are {listed(list(names), 3)}; its paths must be "
            "relative to the folder of the task"
        )
    return keys
