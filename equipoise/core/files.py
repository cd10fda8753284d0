"""Writing so that a reader, or a crash, never meets half a file, and a damaged one is known when it is read."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

CHECKPOINT = "checkpoint.pt"  # of a run under way, in a folder of its own
_SEAL = b"equipoise sealed\n"
_DIGEST = 16  # bytes: damage is to be found, nobody is to be kept from forging


def write_whole(path: Path, data: bytes) -> None:
    """Write aside, fsync, rename: `path` holds either its old content or all of `data`."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(data: bytes) -> str:
    """32 hexadecimal digits; about a gigabyte a second, so a checkpoint of 10 MB takes 10 ms.

    >>> checksum(b"a"), checksum(b"b")
    ('27c35e6e9373877f29e562464e46497e', '96172b4c53372cd10faddc821bfe0318')
    """
    return hashlib.blake2b(data, digest_size=_DIGEST).hexdigest()


def sealed(data: bytes) -> bytes:
    """`data` with its checksum before it.

    >>> unsealed(sealed(b"weights")), unsealed(sealed(b"weights")[:-1]), unsealed(b"weights")
    (b'weights', None, None)
    """
    return _SEAL + bytes.fromhex(checksum(data)) + data


def unsealed(content: bytes) -> bytes | None:
    """What `sealed` was given; None if a single bit of it is not as it was."""
    start = len(_SEAL) + _DIGEST
    head, data = content[:start], content[start:]
    return data if head == _SEAL + bytes.fromhex(checksum(data)) else None


def cache_folder() -> Path:
    """The user's, where systems keep what can be made again."""
    if sys.platform == "darwin":
        base = "~/Library/Caches"
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.abspath(os.path.expanduser(base))) / "equipoise"


def features_folder() -> Path:
    """Where the features of a study's images are kept."""
    return cache_folder() / "features"
