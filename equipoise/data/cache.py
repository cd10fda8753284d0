"""A set's images in files that all processes of a study map: read once, held once, whatever the number of workers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch

from ..core.whole_folders import locked, written_aside
from .arena import Arena
from .features import Features
from .frame import Frame
from .image_files import ImageFiles, each_read
from .on_disk import OnDisk, write_images
from .ragged import Ragged
from .sources import Source
from .task import Images, Split, frame_of
from .write_arena import write_arena

WORTH_SHARING = 2**24  # bytes; a smaller set is read by each process


def cached_source(folder: Path, read: Callable[[], Source]) -> Source:
    """What `read()` gives; the images of a large set on disk in `folder`, where the first process writes them.

    A folder stands for one content: what a killed process left there is taken up again as it is.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            source = read()
            if source.streamed or source.nbytes < WORTH_SHARING:
                return source.in_memory()
            _write(folder, source)
        # mapped before the lock is free: afterwards the files may go
        about = json.loads((folder / "about.json").read_text())
        splits = {name: _split(folder, name, about["frame"]) for name in about["splits"]}
        groups = np.load(folder / "groups.npy") if about.get("groups") else None
        return Source(**splits, class_names=tuple(about["class_names"]), content=about["content"], groups=groups)


def keep_source(folder: Path, read: Callable[[], Source]) -> None:
    """Write what `read()` gives to `folder` unless it is there, however small it is: `cached_source` then finds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            _write(folder, read())


def forget_cached(cache: Path) -> None:
    """Remove what `cached_source` wrote below `cache`; who has mapped it keeps it."""
    for lock in cache.glob("*.lock"):
        with locked(lock):
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)


def _write(folder: Path, source: Source) -> None:
    with written_aside(folder) as aside:
        _write_parts(aside, source)


def _write_parts(aside: Path, source: Source) -> None:
    each_read(partial(_write_images, aside, name, split.images) for name, split in source.splits.items())
    for name, split in source.splits.items():
        np.save(aside / f"{name}_labels.npy", split.labels.numpy())
    if source.groups is not None:
        np.save(aside / "groups.npy", source.groups)
    about = {
        "groups": source.groups is not None,
        "splits": [*source.splits],
        "class_names": source.class_names,
        "content": source.content,
        "frame": asdict(frame) if (frame := frame_of(source.train.images)) else None,
    }
    (aside / "about.json").write_text(json.dumps(about))


def _write_images(folder: Path, name: str, images: Images) -> None:
    if isinstance(images, ImageFiles) and images.frame.whole:
        np.save(folder / f"{name}_table.npy", write_arena(folder / f"{name}.pixels", images).numpy())
    else:
        assert not isinstance(images, Ragged | Features), "a source leaves whole images in their files"
        write_images(folder / f"{name}.npy", images)


def _split(folder: Path, name: str, frame: dict[str, int] | None) -> Split:
    labels = torch.from_numpy(np.load(folder / f"{name}_labels.npy"))
    if frame is None:
        return Split(OnDisk(folder / f"{name}.npy"), labels)
    table = torch.from_numpy(np.load(folder / f"{name}_table.npy"))
    return Split(Ragged(Arena(folder / f"{name}.pixels"), table, Frame(**frame)), labels)
