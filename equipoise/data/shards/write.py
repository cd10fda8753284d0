"""Shards from a folder of images, and an index for shards that other programs wrote."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.escaping import visible
from ...core.files import checksum, write_whole
from ...core.progress import Progress, silent
from ..content import HASHERS
from ..decode import DataError, open_regular, read_content, upright_sides
from ..image_files import Unreadable, each_read
from ..sources._files import Files, files_of_classes
from ..sources.folder import class_names_of, parts_of
from .index import NUMBERS, Shard, ShardIndex
from .tars import LABEL, TarSample, samples_in

CLASSES = "classes.txt"  # a class name in each line
SHARD_BYTES = 2**28  # 256 MB: large enough to be read at full speed, as WebDataset's authors advise
SEED = 0  # of the order of images


def write_shards(
    folder: str | Path, out: str | Path, *, shard_bytes: int = SHARD_BYTES, progress: Progress = silent
) -> Path:
    """Write the images of a folder, which has one folder per class or `train`, `val` and `test`, as WebDataset shards.

    Image files are taken as they are, in an order drawn with a fixed seed, so that each shard is a mixture of classes.
    Gives the path of the index, which is written last: present means complete.

    Args:
        folder: as a task ``folder(path=…)`` takes it.
        out: a folder for the shards; it must be new or empty.
        shard_bytes: about so many bytes are in a shard.
        progress: is called with what is done, how much of it is done, and how much there is to do.
    """
    checks.whole("shard_bytes", shard_bytes, 1)
    base, out = Path(folder).expanduser().resolve(), Path(out).expanduser()
    if not base.is_dir():
        raise DataError(f"{visible(base)} is not a folder; give the folder that holds one folder per class")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{visible(out)} is there already: shards are written to a folder that is new or empty")
    parts = parts_of(base)
    names = class_names_of(parts["train"], base)
    files = {part: files_of_classes(place, base, names) for part, place in parts.items()}
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / CLASSES, "".join(f"{visible(name)}\n" for name in names).encode())
    shards = [(part, number, rows) for part in files for number, rows in enumerate(_shards(files[part], shard_bytes))]
    for done, (part, number, rows) in enumerate(shards, 1):
        of_part, labels = files[part]
        _write_shard(out / f"{part}-{number:06}.tar", [of_part[i].path for i in rows], labels[rows])
        progress("writing shards", done, len(shards))
    return index_shards(out, progress=progress)


def _shards(files: Files, shard_bytes: int) -> list[NDArray[np.int64]]:
    """Which files go into each shard, in random order."""
    order = np.random.default_rng(SEED).permutation(len(files[0]))
    sizes = np.array([files[0][i].found.st_size for i in order])
    number = (sizes.cumsum() - sizes) // shard_bytes
    return np.split(order, np.flatnonzero(np.diff(number)) + 1)


def _write_shard(path: Path, files: Sequence[Path], labels: NDArray[np.int64]) -> None:
    """Times and owners are left out: the same images give the same bytes."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number, (file, label) in enumerate(zip(files, labels.tolist(), strict=True)):
            try:
                content = read_content(file)
            except ValueError as error:
                raise Unreadable([(file, str(error))]) from None
            for kind, data in ((file.suffix[1:].lower(), content), (LABEL, str(label).encode())):
                member = tarfile.TarInfo(f"{path.stem}-{number:06}.{kind}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def index_shards(folder: str | Path, *, progress: Progress = silent) -> Path:
    """Write the index of the tar files in a folder, whoever made them, and give its path; every image is read once.

    Each sample must have one image, and its class number in a file ``.cls``. Files with `val` or `test` as a word of
    their name are those parts; all others are to train on. Class names are the lines of ``classes.txt`` where there is
    one, else the class numbers.

    Args:
        folder: of the tar files.
        progress: is called with what is done, how much of it is done, and how much there is to do.
    """
    base = Path(folder).expanduser()
    tars = sorted(path for path in base.glob("*.tar") if not path.name.startswith("."))
    if not tars:
        raise DataError(f"{visible(base)} has no tar files; give a folder of shards")

    def look(number: int, path: Path) -> Shard:
        progress("reading shards", number, len(tars))
        return _indexed(path)

    shards = each_read(partial(look, number, path) for number, path in enumerate(tars, 1))
    names = _class_names(base, 1 + max(int(shard.labels.max()) for shard in shards))
    return ShardIndex(base, names, tuple(shards)).write()


def _class_names(folder: Path, needed: int) -> tuple[str, ...]:
    path = folder / CLASSES
    if not path.exists():
        return tuple(map(str, range(needed)))
    try:
        names = tuple(visible(line) for line in read_content(path).decode().splitlines())
    except ValueError as error:
        raise DataError(f"{visible(path)} cannot be read: {error}") from None
    if len(names) < needed or len(set(names)) < len(names):
        raise DataError(f"{visible(path)} must have {needed} names or more, one in a line, none of them twice")
    return names


def _indexed(path: Path) -> Shard:
    """A shard's entry; the error names all images that cannot be opened as one."""
    samples = samples_in(path)
    if not samples:
        raise DataError(f"{visible(path)} has no samples: expected images with a file .{LABEL} beside each")
    with open_regular(path) as file, ThreadPoolExecutor(HASHERS) as pool:
        nbytes = os.fstat(file.fileno()).st_size
        looked = list(pool.map(partial(_look, file.fileno()), samples))
    failed = [(path / sample.name, why) for sample, why in zip(samples, looked, strict=True) if isinstance(why, str)]
    if failed:
        raise Unreadable(failed)
    seen = [found for found in looked if not isinstance(found, str)]
    places = np.array([(sample.label, sample.offset, sample.size) for sample in samples], np.int64)
    sides = np.array([(height, width) for _, height, width in seen], np.int64)
    numbers = dict(zip(NUMBERS, np.column_stack((places, sides)).T, strict=True))
    digests = np.frombuffer(b"".join(digest for digest, _, _ in seen), np.uint8).reshape(len(seen), -1)
    return Shard(path.name, nbytes, [sample.name for sample in samples], **numbers, digests=digests)


def _look(descriptor: int, sample: TarSample) -> tuple[bytes, int, int] | str:
    """The digest, height and width of an image, or why it is none."""
    content = os.pread(descriptor, sample.size, sample.offset)
    try:
        return bytes.fromhex(checksum(content)), *upright_sides(content)
    except ValueError as error:
        return str(error)
