"""The index of shards: one JSON file beside them that says which image of which class lies where.

With it class sizes are known before any shard is read, and each image can be read by itself.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.escaping import visible
from ...core.files import write_whole
from ...core.words import shown
from ..decode import MAX_BYTES, DataError, read_content
from ..names import PARTS

INDEX = "index.json"
FORMAT = "equipoise index of WebDataset shards, version 1"
NUMBERS = ("labels", "offsets", "sizes", "heights", "widths")
DIGEST = 16  # bytes


@dataclass(frozen=True)
class Shard:
    """A tar file and its images, in its order; `offsets` and `sizes` are in bytes, `digests` as `checksum` gives them.

    `heights` and `widths` are of upright images.
    """

    name: str
    nbytes: int
    images: list[str]
    labels: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    heights: NDArray[np.int64]
    widths: NDArray[np.int64]
    digests: NDArray[np.uint8]

    @property
    def part(self) -> str:
        return part_of(self.name)

    def to_dict(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name).tolist() for name in NUMBERS}
        return {"name": self.name, "bytes": self.nbytes, "images": self.images, **numbers} | {
            "digests": self.digests.tobytes().hex()
        }


@dataclass(frozen=True)
class ShardIndex:
    """The shards of a folder and their classes."""

    folder: Path
    class_names: tuple[str, ...]
    shards: tuple[Shard, ...]

    def class_counts(self, part: str) -> list[int]:
        """Images of each class in a part: "train", "valid" or "test"."""
        labels = [shard.labels for shard in self.shards if shard.part == part]
        return np.bincount(np.concatenate([np.empty(0, np.int64), *labels]), minlength=len(self.class_names)).tolist()

    @property
    def parts(self) -> list[str]:
        return [part for part in ("train", "valid", "test") if any(shard.part == part for shard in self.shards)]

    def write(self) -> Path:
        about = {
            "format": FORMAT,
            "class_names": self.class_names,
            "class_counts": {part: self.class_counts(part) for part in self.parts},
            "shards": [shard.to_dict() for shard in self.shards],
        }
        write_whole(self.folder / INDEX, json.dumps(about, separators=(",", ":")).encode())
        return self.folder / INDEX


def part_of(name: str) -> str:
    """The part that a shard's name tells.

    >>> part_of("imagenet-val-000012.tar"), part_of("photos_000.tar")
    ('valid', 'train')
    """
    told = {PARTS[word] for word in re.split(r"[^a-z]+", name.lower()) if word in PARTS}
    return told.pop() if len(told) == 1 else "train"


def read_index(folder: Path) -> ShardIndex:
    """The index of a folder of shards; each shard must be there, and as long as the index says."""
    path = folder / INDEX
    if not path.exists():
        raise DataError(
            f"{visible(folder)} has no {INDEX}; 'equipoise shards' makes one for the tar files of a folder, or shards "
            "and index from a folder of images"
        )
    try:
        found = json.loads(read_content(path))
        index = _index(folder, found)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{visible(path)} is damaged: expected the index that 'equipoise shards' writes, but "
            f"{visible(str(error))}; write it again"
        ) from None
    for shard in index.shards:
        _check_file(folder / shard.name, shard.nbytes)
    return index


def _index(folder: Path, found: Any) -> ShardIndex:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"it does not say that its format is {FORMAT!r}")
    names = _texts(found, "class_names", "the index")
    shards = found.get("shards")
    if not isinstance(shards, list) or not all(isinstance(shard, dict) for shard in shards):
        raise ValueError("it has no list of shards")
    index = ShardIndex(folder, tuple(names), tuple(_shard(shard, len(names)) for shard in shards))
    if len({shard.name for shard in index.shards}) < len(shards):
        raise ValueError("it names a shard twice")
    if found.get("class_counts") != {part: index.class_counts(part) for part in index.parts}:
        raise ValueError("its class_counts are not those of its labels")
    return index


def _shard(found: Mapping[str, Any], num_classes: int) -> Shard:
    name, nbytes = found.get("name"), found.get("bytes")
    if not isinstance(name, str) or name != Path(name).name or name in ("", ".", ".."):
        raise ValueError(f"{shown(name)} is not the name of a shard beside it")
    if type(nbytes) is not int or not 0 <= nbytes < 2**63:
        raise ValueError(f"{name} has {shown(nbytes)} bytes")
    images = _texts(found, "images", name)
    numbers = {column: _numbers(found, column, name, len(images)) for column in NUMBERS}
    _check_places(name, nbytes, num_classes, numbers)
    try:
        digests = np.frombuffer(bytes.fromhex(found["digests"]), np.uint8).reshape(len(images), DIGEST)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"digests of {name} are not {2 * DIGEST} hexadecimal digits for each image") from None
    return Shard(name, nbytes, images, **numbers, digests=digests)


def _check_places(name: str, nbytes: int, num_classes: int, numbers: Mapping[str, NDArray[np.int64]]) -> None:
    if (numbers["labels"] >= num_classes).any():
        raise ValueError(f"labels of {name} go up to {numbers['labels'].max()}, and there are {num_classes} classes")
    if (numbers["sizes"] > MAX_BYTES).any() or (numbers["offsets"] > nbytes - numbers["sizes"]).any():
        raise ValueError(f"images of {name} lie beyond its {nbytes:,} bytes")


def _texts(found: Mapping[str, Any], column: str, owner: str) -> list[str]:
    values = found.get(column)
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{column} of {owner} are not a list of names")
    return values


def _numbers(found: Mapping[str, Any], column: str, owner: str, count: int) -> NDArray[np.int64]:
    values = found.get(column)
    whole = isinstance(values, list) and all(type(value) is int and 0 <= value < 2**62 for value in values)
    if not whole or not isinstance(values, list) or len(values) != count:
        raise ValueError(f"{column} of {owner} are not {count} whole numbers")
    return np.array(values, np.int64)


def _check_file(path: Path, nbytes: int) -> None:
    try:
        status = os.stat(path)
    except OSError as error:
        raise DataError(
            f"{visible(path)} cannot be read ({error.strerror}), and {INDEX} names it: put it back, or write the index "
            "again with 'equipoise shards'"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{visible(path)} is not a regular file; a shard is a tar file")
    if status.st_size != nbytes:
        raise DataError(
            f"{visible(path)} has {status.st_size:,} bytes, and {INDEX} says {nbytes:,}: copy it again, or, if it was "
            "changed on purpose, write the index again with 'equipoise shards'"
        )
