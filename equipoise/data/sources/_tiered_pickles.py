"""The release of Tiered-ImageNet, which is pickles of encoded images, as image files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...core.escaping import visible
from ..decode import DataError
from ._base import damaged, read_bytes
from ._pickle import read_plain

PARTS = ("train", "val", "test")


def unpack_tiered_imagenet(folder: str | Path) -> None:
    """Write the images in ``train_images_png.pkl`` and its siblings into ``train``, ``val`` and ``test``, by class.

    Classes are called by their part and number, ``train/train_000``. A part whose folder is there is left alone: while
    it is written it has another name, so that a folder that is there is complete. The pickles are read without trust, a
    part at a time; the largest takes some 10 GB of memory.
    """
    base = Path(folder).expanduser()
    parts = [part for part in PARTS if not (base / part).is_dir()]
    if lost := [name for part in parts for name in _files(part) if not (base / name).is_file()]:
        raise DataError(f"{visible(base)} lacks {', '.join(lost)}; give the folder that the archive unpacks to")
    for part in parts:
        images, labels = (base / name for name in _files(part))
        _write(base / f"{part}.part", part, _images(images), _labels(labels))
        (base / f"{part}.part").rename(base / part)


def _files(part: str) -> tuple[str, str]:
    return f"{part}_images_png.pkl", f"{part}_labels.pkl"


def _write(place: Path, part: str, images: list[bytes], labels: list[int]) -> None:
    if len(images) != len(labels):
        raise DataError(f"{part} of {visible(place.parent)} has {len(images)} images and {len(labels)} labels")
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        folder = place / f"{part}_{label:03}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:06}.png").write_bytes(image)


def _images(path: Path) -> list[bytes]:
    """Each image as its encoder wrote it: an array of bytes."""
    found = _read(path, "a pickled list of arrays of bytes")
    if not isinstance(found, list) or not all(isinstance(x, np.ndarray) and x.dtype == np.uint8 for x in found):
        raise damaged(path, "a pickled list of arrays of bytes", type(found).__name__)
    return [array.tobytes() for array in found]


def _labels(path: Path) -> list[int]:
    """The class of each image; dictionaries that Python 2 pickled have bytes for keys."""
    expected = "a pickled dictionary with label_specific"
    found = _read(path, expected)
    labels = found.get(b"label_specific", found.get("label_specific")) if isinstance(found, dict) else None
    if labels is None or (array := np.asarray(labels)).ndim != 1 or array.dtype.kind not in "iu":
        raise damaged(path, expected, type(found).__name__)
    return [int(label) for label in array]


def _read(path: Path, expected: str) -> Any:
    content = read_bytes(path)
    try:
        return read_plain(content)
    except Exception as error:  # a damaged pickle may raise almost anything
        raise damaged(path, expected, f"{type(error).__name__}: {error}") from error
