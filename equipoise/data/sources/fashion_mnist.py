"""Fashion-MNIST, in the idx files of its authors."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import register
from ..task import Split
from ._base import Source, as_split, check_labels, damaged, read_bytes
from ._official import Layout, Size, official

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
FASHION_MNIST = official(
    "fashion_mnist",
    Layout("", FILES),
    get="On Debian and Ubuntu the package dataset-fashion-mnist has them: apt install dataset-fashion-mnist.",
    size=Size(classes=10, train=60_000, test=10_000),
)
NAMES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
COMPANIONS = {"model": "cnn_small", "augment": "crop_flip(pad=2, flip=True)"}


@register("fashion_mnist", kind="task", year=2017, arxiv="1708.07747", companions=COMPANIONS)
def fashion_mnist(root: str | Path | None = None) -> Source:
    """Clothes from a shop's catalogue: 60,000 training and 10,000 test gray images of 28 × 28, ten classes.

    Reads the four idx files, plain or gzipped. Debian's package ``dataset-fashion-mnist`` installs them.

    Differs from the paper: nothing known.

    Licence: MIT.

    Reference: Xiao, Rasul, Vollgraf. Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
    Algorithms. arXiv 2017.
    """
    paths = FASHION_MNIST.find(root).paths
    return Source.of_files(_split(*paths[:2]), _split(*paths[2:]), NAMES)


def _split(image_path: Path, label_path: Path) -> Split:
    images, labels = read_idx(image_path, 3), read_idx(label_path, 1)
    if len(images) != len(labels):
        raise damaged(label_path, f"{len(images)} labels, as many as {image_path.name} has images", f"{len(labels)}")
    check_labels(label_path, labels, len(NAMES))
    return as_split(images[:, None], labels)


def read_idx(path: Path, dims: int) -> NDArray[Any]:
    """The array of an idx file: 0, 0, type (8 is uint8), number of dimensions, each size in 4 bytes, the data."""
    content, start = read_bytes(path), 4 + 4 * dims
    if content[:4] != bytes([0, 0, 8, dims]) or len(content) < start:
        raise damaged(path, f"an idx file of bytes with {dims} dimensions", f"a beginning of {content[:4].hex(' ')!r}")
    shape = struct.unpack(f">{dims}I", content[4:start])
    if len(content) - start != (size := int(np.prod(shape, dtype=object))):
        raise damaged(path, f"{size} bytes for shape {shape}", f"{len(content) - start}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
