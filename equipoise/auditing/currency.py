"""Whether an audit still tells of the images as they are: it writes down what it saw, file by file."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from pathlib import Path

from ..core.files import cache_folder
from ..core.words import counted
from ..data.content import digests_of
from ..data.tables import read_table
from ..data.walk import ImageFile
from .listing import list_images

SAW = "files.csv"  # the path of every image and the SHA-256 of its content, which is empty where it could not be read


@dataclass(frozen=True)
class Changes:
    """Names of images that came, went, or have other content than an audit saw."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def __str__(self) -> str:
        """
        >>> str(Changes(added=("a.png", "b.png"), changed=("c.png",)))
        '2 images were added, 1 image was changed'
        """
        told = (("added", self.added), ("removed", self.removed), ("changed", self.changed))
        return ", ".join(f"{counted(len(names), 'image was', 'images were')} {what}" for what, names in told if names)


def changes_since(audit: Path, images: Path) -> Changes | None:
    """What happened to `images` since the audit in the folder `audit`; None where that does not tell what it saw.

    Files are read only if size, times or inode differ from when a task or this function last read them.
    """
    if not (audit / SAW).is_file():
        return None
    table = read_table(audit / SAW)
    saw = dict(zip(map(posixpath.normpath, table.column("path")), table.column("sha256"), strict=True))
    listing = list_images(images)
    there = {item.name: item.path for item in listing.items}
    both = [name for name in there if saw.get(name)]
    files = [ImageFile(there[name], os.stat(there[name])) for name in both]
    digests = digests_of(files, listing.base, cache_folder())
    return Changes(
        added=tuple(name for name in there if name not in saw),
        removed=tuple(name for name in saw if name not in there),
        changed=tuple(name for name, digest in zip(both, digests, strict=True) if digest.hex() != saw[name]),
    )
