"""CIFAR-10 and CIFAR-100, in the binary or the Python layout of their author."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import register
from ..task import Split
from ._base import Source, as_split, check_labels, damaged, read_bytes
from ._official import Layout, Official, Size, official
from ._pickle import read_plain

PIXELS = 3 * 32 * 32
BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6)) + ("test_batch",)
GET = "They are on the author's page, The CIFAR-10 and CIFAR-100 datasets, at the University of Toronto."
CIFAR10 = official(
    "cifar10",
    Layout("cifar-10-batches-bin", tuple(f"{name}.bin" for name in BATCHES)),
    Layout("cifar-10-batches-py", BATCHES),
    get=GET,
    size=Size(classes=10, train=50_000, test=10_000),
)
CIFAR100 = official(
    "cifar100",
    Layout("cifar-100-binary", ("train.bin", "test.bin")),
    Layout("cifar-100-python", ("train", "test")),
    get=GET,
    size=Size(classes=100, train=50_000, test=10_000),
)

COMPANIONS = {"model": "resnet32", "augment": "crop_flip(pad=4, flip=True)"}

CIFAR10_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_FINE = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
"""
CIFAR100_NAMES = tuple(_FINE.split())


@register("cifar10", kind="task", year=2009, companions=COMPANIONS)
def cifar10(root: str | Path | None = None) -> Source:
    """Photographs of things and animals: 50,000 training and 10,000 test colour images of 32 × 32, ten classes.

    Reads ``cifar-10-batches-bin`` or ``cifar-10-batches-py`` from the author's page.

    Differs from the paper: nothing known.

    Licence: none stated; cite it, do not pass it on.

    Reference: Krizhevsky. Learning Multiple Layers of Features from Tiny Images. Technical report 2009.
    """
    return _read(CIFAR10, CIFAR10_NAMES, label_bytes=1, label_key=b"labels", root=root)


@register("cifar100", kind="task", year=2009, companions=COMPANIONS)
def cifar100(root: str | Path | None = None) -> Source:
    """Photographs of things and animals: 50,000 training and 10,000 test colour images of 32 × 32, a hundred classes.

    Reads ``cifar-100-binary`` or ``cifar-100-python`` from the author's page; the labels are the fine ones.

    Differs from the paper: nothing known.

    Licence: none stated; cite it, do not pass it on.

    Reference: Krizhevsky. Learning Multiple Layers of Features from Tiny Images. Technical report 2009.
    """
    return _read(CIFAR100, CIFAR100_NAMES, label_bytes=2, label_key=b"fine_labels", root=root)


def _read(
    task: Official, names: tuple[str, ...], label_bytes: int, label_key: bytes, root: str | Path | None
) -> Source:
    layout, _, paths = task.find(root)
    is_binary = layout is task.layouts[0]
    parts = [read_binary(path, label_bytes) if is_binary else read_pickle(path, label_key) for path in paths]
    for path, (_, labels) in zip(paths, parts, strict=True):
        check_labels(path, labels, len(names))
    return Source.of_files(_join(parts[:-1]), _join(parts[-1:]), names)


def _join(parts: list[tuple[NDArray[Any], NDArray[Any]]]) -> Split:
    images = np.concatenate([images for images, _ in parts])
    return as_split(images.reshape(-1, 3, 32, 32), np.concatenate([labels for _, labels in parts]))


def read_binary(path: Path, label_bytes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images (N, 3072) and labels (N,) of records that are `label_bytes` labels, the last one ours, and the pixels."""
    content, size = read_bytes(path), label_bytes + PIXELS
    if not content or len(content) % size:
        raise damaged(path, f"whole records of {size} bytes", f"{len(content)} bytes")
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    return records[:, label_bytes:], records[:, label_bytes - 1]


def read_pickle(path: Path, label_key: bytes) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images (N, 3072) and labels (N,) of a pickled dictionary."""
    content = read_bytes(path)
    try:
        data = read_plain(content)
        images, labels = data[b"data"], np.array(data[label_key], dtype=np.int64)
    except Exception as error:  # a damaged pickle may raise almost anything
        expected = f"a pickled dictionary with data and {label_key.decode()}"
        raise damaged(path, expected, f"{type(error).__name__}: {error}") from error
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape != (len(labels), PIXELS):
        got = f"{getattr(images, 'dtype', type(images).__name__)} {getattr(images, 'shape', '')}"
        raise damaged(path, f"data of {len(labels)} labels as uint8 {(len(labels), PIXELS)}", got)
    return images, labels
