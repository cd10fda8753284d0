"""Tasks that are told where their data lies: ``folder(path='photos', size=64)``.

What the data is and where it lies are two things. A moved folder is the same data, so a place is no part of its name.
"""

from __future__ import annotations

from pathlib import Path

from ..core import Spec

PLACE = "path"  # the parameter that says where


def has_place(name: str) -> bool:
    """Whether the task is told where its data lies; the user may then change the data at any time."""
    return any(parameter == PLACE for parameter, _ in Spec.parse(name).params)


def placeless(name: str) -> str:
    """The task without its place, and without what is not chosen, so that a later version's parameters change no name.

    >>> placeless("folder(path='photos', size=64, resize=None)")
    'folder(size=64)'
    """
    spec = Spec.parse(name)
    return str(Spec(spec.name, tuple((key, value) for key, value in spec.params if key != PLACE and value is not None)))


def placed_near(name: str, folder: Path) -> str:
    """The task with a relative place made absolute where `folder`, that of a study's file, has it.

    Left alone where the working folder is that folder, so that a study and what it needs can go elsewhere together.
    """
    spec = Spec.parse(name)
    given = dict(spec.params)
    if not isinstance(given.get(PLACE), str):
        return name
    try:
        path = Path(given[PLACE]).expanduser()
        near = Path(folder, path).resolve()
        if path.is_absolute() or not near.is_dir() or near == path.resolve():
            return name
    except (OSError, ValueError, RuntimeError):  # no path at all: who reads it says so
        return name
    return str(Spec(spec.name, tuple({**given, PLACE: str(near)}.items())))
