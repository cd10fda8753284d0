"""The image files of a folder, and what in it is no such thing: broken links, pipes, ways out of the folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..core.escaping import visible
from .decode import SUFFIXES, DataError
from .names import listed

DEEPEST = 100  # folders in folders


@dataclass(frozen=True)
class ImageFile:
    """A file and what its system says of it: when none of that has changed, its content has not."""

    path: Path
    found: os.stat_result

    @property
    def stamp(self) -> tuple[int, ...]:
        it = self.found
        return (it.st_size, it.st_mtime_ns, it.st_ctime_ns, it.st_ino, it.st_dev)


def subfolders(folder: Path, base: Path) -> list[str]:
    """Names of the folders in `folder`, in order; those that begin with a dot are passed over."""
    walk = _Walk(base)
    try:
        names = [name for name, is_folder, _ in walk.entries(folder.resolve()) if is_folder]
    except OSError as error:
        raise DataError(f"{visible(folder)} cannot be read: {error.strerror}") from None
    walk.refuse_problems()
    return names


def image_files(folder: Path, base: Path) -> list[ImageFile]:
    """The images of `folder` and of the folders in it, in the order of their names; links may not lead out of `base`.

    Everything that is in the way is told at once.
    """
    walk = _Walk(base)
    files = list(walk.images(folder.resolve()))
    walk.refuse_problems()
    return files


def survey(folder: Path, base: Path, suffixes: Collection[str]) -> tuple[list[ImageFile], list[str]]:
    """The files of `folder` whose names end so, and what is in the way, by the same rules; nothing is refused."""
    walk = _Walk(base, suffixes)
    return list(walk.images(folder.resolve())), walk.problems


class _Walk:
    def __init__(self, base: Path, suffixes: Collection[str] = SUFFIXES) -> None:
        self.base, self.suffixes = base.resolve(), suffixes
        self.problems: list[str] = []
        self.above: list[tuple[int, int]] = []  # the folders we are in: a link to one of them would never end

    def refuse_problems(self) -> None:
        if self.problems:
            lines = listed(self.problems, separator="\n  ")
            raise DataError(
                f"{visible(self.base)} holds what cannot be read; take it away, or copy it here:\n  {lines}"
            )

    def images(self, folder: Path) -> Iterator[ImageFile]:
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in self.above:
                self.problems.append(f"{folder} is a link to a folder that it lies in")
                return
            if len(self.above) == DEEPEST:
                self.problems.append(f"{folder} is a folder in {DEEPEST} others")
                return
            entries = self.entries(folder)
        except OSError as error:
            self.problems.append(f"{folder}: {error.strerror}")
            return
        self.above.append((status.st_dev, status.st_ino))
        for name, is_folder, found in entries:
            if is_folder:
                yield from self.images(folder / name)
            elif os.path.splitext(name)[1].lower() in self.suffixes:
                if stat.S_ISREG(found.st_mode):
                    yield ImageFile(folder / name, found)
                else:
                    self.problems.append(f"{folder / name} is not a regular file")
        self.above.pop()

    def entries(self, folder: Path) -> list[tuple[str, bool, os.stat_result]]:
        """(name, whether it is a folder, its status) of what is visible and inside, in the order of names."""
        found = []
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.startswith("."):
                    continue
                if entry.is_symlink() and not self._leads_inside(entry):
                    continue
                found.append((entry.name, entry.is_dir(), entry.stat()))
        return found

    def _leads_inside(self, entry: os.DirEntry[str]) -> bool:
        """Whether a link may be followed; one that concerns no images is passed over without a word."""
        target = Path(os.path.realpath(entry.path))
        is_image = os.path.splitext(entry.name)[1].lower() in self.suffixes
        if not target.exists():
            if is_image:
                self.problems.append(f"{entry.path} is a link that leads nowhere")
            return False
        if target.is_relative_to(self.base):
            return True
        if is_image or target.is_dir():
            self.problems.append(f"{entry.path} is a link that leads out of the folder, to {target}")
        return False
