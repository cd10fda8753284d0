"""Sets that their authors publish: where their files are looked for, where to get them, and how much there is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...core import EquipoiseError
from ._base import data_folders


@dataclass(frozen=True)
class Layout:
    """What makes up a set; `folder` is what the official archive unpacks to, "" where it has none.

    Names of `files` that end in a slash are folders.
    """

    folder: str
    files: tuple[str, ...]


class Size(NamedTuple):
    """How much a set has: classes, and the images of each part as the task has them."""

    classes: int
    train: int
    test: int
    valid: int = 0


class Found(NamedTuple):
    """A layout that is complete: the folder that holds it, and what it names there, in its order."""

    layout: Layout
    folder: Path
    paths: list[Path]


@dataclass(frozen=True)
class Official:
    """A published set: its layouts, the first complete one is read; who gives it away; its official size.

    Parameters in `varied_by` change its size.
    """

    task: str
    layouts: tuple[Layout, ...]
    get: str
    size: Size
    varied_by: tuple[str, ...] = ()

    def find(self, root: str | Path | None = None) -> Found:
        """Where it lies; the error says what to put where."""
        bases, incomplete = data_folders(root), ""
        for base in bases:
            for layout in self.layouts:
                for folder in self._folders(base, layout):
                    paths = [_existing(folder, name) for name in layout.files]
                    found = [path for path in paths if path]
                    if len(found) == len(paths):
                        return Found(layout, folder, found)
                    if found and not incomplete:
                        lost = [name for name, path in zip(layout.files, paths, strict=True) if not path]
                        incomplete = f" {folder} has a part of them and lacks {', '.join(lost)}."
        raise EquipoiseError(self._missing(bases, incomplete, root is not None))

    @property
    def is_here(self) -> bool:
        """Whether the files are on this machine; nothing in them is read."""
        try:
            return bool(self.find())
        except EquipoiseError:
            return False

    @property
    def place(self) -> str:
        """The folder to look for, in words: ``cifar-10-batches-bin/ or cifar-10-batches-py/``."""
        return " or ".join(dict.fromkeys(f"{layout.folder or self.task}/" for layout in self.layouts))

    def _folders(self, base: Path, layout: Layout) -> list[Path]:
        """The archive's folder, the task's (Debian writes it with hyphens), or the files directly."""
        parents = (base / self.task, base / self.task.replace("_", "-"), base)
        return list(dict.fromkeys([parent / layout.folder for parent in parents] + list(parents)))

    def _missing(self, bases: tuple[Path, ...], incomplete: str, given: bool) -> str:
        wanted = ", or ".join(f"{', '.join(x.files)} into {bases[0] / self.task / x.folder}" for x in self.layouts)
        packed = "" if any(name.endswith("/") for x in self.layouts for name in x.files) else " (plain or .gz)"
        setting = "give as root" if given else "set EQUIPOISE_DATA to"
        return (
            f"the files of {self.task} were not found.{incomplete} Put {wanted}{packed}, or {setting} the folder that "
            f"holds them. {self.get} Looked in {', '.join(map(str, bases))}."
        )


OFFICIAL: dict[str, Official] = {}


def official(task: str, *layouts: Layout, get: str, size: Size, varied_by: tuple[str, ...] = ()) -> Official:
    """Describe a published set, so that `equipoise tasks` and notes on the data know of it."""
    OFFICIAL[task] = Official(task, layouts, get, size, varied_by)
    return OFFICIAL[task]


def _existing(folder: Path, name: str) -> Path | None:
    path = folder / name
    if name.endswith("/"):
        return path if path.is_dir() else None
    packed = path.with_name(path.name + ".gz")
    return path if path.is_file() else packed if packed.is_file() else None
