"""What a data set *is*: a hash of its images, labels, class names and parts, wherever its files lie.

Files are read for it once. An index in the user's cache folder remembers the hash of each by its size, times and
inode; a damaged or missing index costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from torch import Tensor

from ..core.files import write_whole
from .decode import DataError
from .names import listed
from .parallel import in_parallel
from .walk import ImageFile

READING = 1  # raised whenever the same files come to be read as other pixels
HASHERS = 8  # threads: hashing happens outside Python
PART = 32  # files that a thread is given at a time
BLOCK = 2**16  # bytes read at a time: a photograph takes one or two, and none takes memory that must be fetched anew
RACY = 2_000_000_000  # ns; a file younger than this may change again without a change of its times
_KEY, _DIGEST = 16, 32  # bytes of an index's entry

Part = tuple[Sequence[int], bytes | memoryview]  # labels, and the images' bytes or digests


def content_of(class_names: Sequence[str], parts: Sequence[Part], groups: Sequence[int] | None = None) -> str:
    """The identity of a set: `parts` are train, validation and test, each in its order; `groups` are of train."""
    whole = hashlib.sha256(json.dumps([READING, list(class_names)]).encode())
    for labels, images in parts:
        whole.update(f"\n{len(labels)} {len(images)}\n".encode())
        whole.update(np.asarray(labels, "<i8").tobytes())
        whole.update(images)
    if groups is not None:
        whole.update(b"\ngroups\n" + np.asarray(groups, "<i8").tobytes())
    return whole.hexdigest()[:16]


def content_of_tensors(class_names: Sequence[str], parts: Sequence[tuple[Tensor, Tensor]]) -> str:
    """The same of images (N, c, h, w) and labels in memory."""
    shapes = [str(tuple(images.shape[1:])) for images, _ in parts]
    plain = [(labels.tolist(), images.contiguous().numpy().reshape(-1).data) for images, labels in parts]
    return content_of([*class_names, *shapes], plain)


def digests_of(files: Sequence[ImageFile], base: Path, cache: Path, task: str = "") -> list[bytes]:
    """SHA-256 of each file's content; only those are read that `cache` does not know, or that have changed.

    Tasks that take other images of the same folder each have an index of their own, by the name in `task`.
    """
    where = cache / "content" / hashlib.sha256(os.fsencode(base) + task.encode()).hexdigest()[:16]
    known, began = _read_index(where), time.time_ns()
    keys = [_key(file, base) for file in files]
    unknown = [i for i, key in enumerate(keys) if key not in known]
    parts = [[files[i].path for i in unknown[start : start + PART]] for start in range(0, len(unknown), PART)]
    read = [found for part in in_parallel(_digests, parts, len(unknown), HASHERS) for found in part]
    failed = [f"{files[i].path}: {found}" for i, found in zip(unknown, read, strict=True) if isinstance(found, str)]
    if failed:
        raise DataError("files cannot be read:\n  " + listed(failed, separator="\n  "))
    new = {keys[i]: found for i, found in zip(unknown, read, strict=True) if isinstance(found, bytes)}
    digests = [new.get(key) or known[key] for key in keys]
    if unknown or len(known) > len(keys):
        settled = [_settled(file, began) for file in files]
        rows = {key: digest for key, digest, old in zip(keys, digests, settled, strict=True) if old}
        _write_index(where, rows)
    return digests


def _digests(paths: Sequence[Path]) -> list[bytes | str]:
    return [_digest(path) for path in paths]


def _digest(path: Path) -> bytes | str:
    """The digest of a file, or why it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb", buffering=0) as file:
            while block := file.read(BLOCK):
                digest.update(block)
    except OSError as error:
        return error.strerror or str(error)
    return digest.digest()


def _key(file: ImageFile, base: Path) -> bytes:
    name = os.fsencode(file.path)[len(os.fsencode(base)) :]
    return hashlib.blake2b(repr(file.stamp).encode() + name, digest_size=_KEY).digest()


def _settled(file: ImageFile, now: int) -> bool:
    return max(file.found.st_mtime_ns, file.found.st_ctime_ns) < now - RACY


def _read_index(path: Path) -> dict[bytes, bytes]:
    try:
        whole = path.read_bytes()
    except OSError:
        return {}
    check, rows = whole[:_DIGEST], whole[_DIGEST:]
    if hashlib.sha256(rows).digest() != check:
        return {}
    step = _KEY + _DIGEST
    return {rows[i : i + _KEY]: rows[i + _KEY : i + step] for i in range(0, len(rows), step)}


def _write_index(path: Path, rows: dict[bytes, bytes]) -> None:
    """Best effort: where nothing can be written, files are read again the next time."""
    whole = b"".join(key + digest for key, digest in rows.items())
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, hashlib.sha256(whole).digest() + whole)
