"""Tasks that are told where their data lies: ``folder(path='photos', size=64)``.

What the data is and where it lies are two things. A moved folder is the same data, so a place is no part of its name.
A file of groups, or of what is left out, may move as well: what it says of the images is part of their content.
"""

from __future__ import annotations

from pathlib import Path

from ..core import Spec

PLACE = "path"  # the parameter that says where
PLACES = (PLACE, "groups", "leave_out")


def has_place(name: str) -> bool:
    """Whether the task is told where its data lies; the user may then change the data at any time."""
    return any(parameter == PLACE for parameter, _ in Spec.parse(name).params)


def placeless(name: str) -> str:
    """The task without its place, and without what is not chosen, so that a later version's parameters change no name.

    >>> placeless("folder(path='photos', size=64, resize=None)")
    'folder(size=64)'
    """
    spec = Spec.parse(name)
    chosen = ((key, value) for key, value in spec.params if key not in PLACES and value is not None)
    return str(Spec(spec.name, tuple(chosen)))


def placed_near(name: str, folder: Path) -> str:
    """The task with each relative place made absolute where `folder`, that of a study's file, has it.

    Left alone where the working folder is that folder, so that a study and what it needs can go elsewhere together.
    """
    spec = Spec.parse(name)
    given = dict(spec.params)
    near = {place: found for place in PLACES if (found := _near(given.get(place), folder, place == PLACE))}
    return str(Spec(spec.name, tuple({**given, **near}.items()))) if near else name


def _near(place: object, folder: Path, is_folder: bool) -> str | None:
    """The absolute form of a place in `folder`, if it needs one."""
    if not isinstance(place, str):
        return None
    try:
        path = Path(place).expanduser()
        near = Path(folder, path).resolve()
        there = near.is_file() or (is_folder and near.is_dir())  # the images may be a folder or a table
        return None if path.is_absolute() or not there or near == path.resolve() else str(near)
    except (OSError, ValueError, RuntimeError):  # no path at all: who reads it says so
        return None
