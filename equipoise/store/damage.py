"""What can go wrong with the files of a store, in words that say what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core import EquipoiseError


class Damaged(EquipoiseError):
    """A file is not what was written. `problem` says how that shows, `remedy` what to do."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        super().__init__(f"{path} is damaged: {problem}. {remedy[:1].upper()}{remedy[1:]}.")
        self.path, self.problem = path, problem


@contextmanager
def understood(path: Path, remedy: str) -> Iterator[None]:
    """Turn what goes wrong while the content of a file is taken apart into `Damaged`."""
    try:
        yield
    except EquipoiseError:
        raise
    except KeyError as error:
        raise Damaged(path, f"{error} is not in it", remedy) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise Damaged(path, str(error), remedy) from None


def content_of(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Damaged(path, f"it cannot be read ({error.strerror})", remedy) from None


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the system's errors about a folder into words that say what to do."""
    remedies = {
        errno.ENOSPC: "the disk is full; make room and run the same command again",
        errno.EDQUOT: "your disk quota is used up; make room and run the same command again",
        errno.EROFS: "the disk is read-only; choose another folder with --out",
        errno.EACCES: "you may not write there; choose another folder with --out",
        errno.EPERM: "you may not write there; choose another folder with --out",
        errno.ENOTDIR: "a file is in the way; choose another folder with --out",
        errno.EEXIST: "a file is in the way; choose another folder with --out",
        errno.EISDIR: "a folder is in the way; choose another folder with --out",
    }
    try:
        yield
    except OSError as error:
        if error.errno not in remedies:
            raise
        raise EquipoiseError(f"cannot write to {path}: {remedies[error.errno]}. Finished runs are kept.") from error
