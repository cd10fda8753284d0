"""What is in a tar file of WebDataset: samples, each an image and its class, side by side under one name."""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from ...core.escaping import visible
from ..decode import MAX_BYTES, SUFFIXES, DataError, open_regular

LABEL = "cls"  # WebDataset's name for a class number
LONGEST_LABEL = 20  # bytes of its text
BLOCK = 512  # bytes: what a tar file is made of
_NAME = re.compile(r"((?:.*/)?[^/.]+)\.([^/]+)", re.DOTALL)  # a sample's name ends at the first dot


@dataclass(frozen=True)
class TarSample:
    """An image as it lies in a tar file, and its class."""

    name: str
    offset: int
    size: int
    label: int


@dataclass(frozen=True)
class _Member:
    name: str
    key: str
    kind: str
    offset: int
    size: int


def samples_in(path: Path) -> list[TarSample]:
    """All samples of a tar file, in its order; nothing of it is trusted."""
    try:
        with open_regular(path) as file:
            members = list(_members(file))
            return [_sample(file, list(group)) for _, group in groupby(members, lambda member: member.key)]
    except (ValueError, OverflowError, OSError, tarfile.TarError) as error:
        raise DataError(
            f"{visible(path)} is no shard: expected an uncompressed tar file in which each image has a file .{LABEL} "
            f"with its class number beside it, but {visible(str(error))}; copy it again, or write it anew"
        ) from None


def _members(file: BinaryIO) -> Iterator[_Member]:
    """The files of a tar that belong to samples; the rest, such as folders, is passed over as WebDataset does."""
    length, end = os.fstat(file.fileno()).st_size, 0
    with tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            end = member.offset_data
            if not member.isreg():
                continue
            end += -(-member.size // BLOCK) * BLOCK
            if member.issparse() or not 0 <= member.size <= MAX_BYTES or end > length:
                raise ValueError(f"{member.name} has {member.size:,} bytes that are not all there")
            named = _NAME.fullmatch(member.name)
            if named is not None and not member.name.startswith("__"):
                key, kind = named.groups()
                yield _Member(member.name, key, kind.lower(), member.offset_data, member.size)
    # a damaged header ends tarfile's listing without a word; after the last file there are zeros alone
    file.seek(end)
    rest = file.read(min(length - end, MAX_BYTES))
    if len(rest) < 2 * BLOCK or any(rest):
        raise ValueError(f"it breaks off or is damaged after {end:,} bytes")


def _sample(file: BinaryIO, members: list[_Member]) -> TarSample:
    key = members[0].key
    images = [member for member in members if f".{member.kind}" in SUFFIXES]
    labels = [member for member in members if member.kind == LABEL]
    if len(images) != 1 or len(labels) != 1:
        raise ValueError(f"sample {key} has {len(images)} images and {len(labels)} files .{LABEL}")
    (image,), (label,) = images, labels
    text = os.pread(file.fileno(), min(label.size, LONGEST_LABEL + 1), label.offset).strip()
    if not text.isdigit() or label.size > LONGEST_LABEL:
        raise ValueError(f"{label.name} has {text!r}, which is no class number")
    return TarSample(image.name, image.offset, image.size, int(text))
