"""Street View House Numbers, in the MATLAB files of its authors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import EquipoiseError, checks, register
from ._base import Source, as_split, check_labels, damaged
from ._mat import read_mat, whole_numbers
from ._official import Layout, Size, official

SVHN = official(
    "svhn",
    Layout("", ("train_32x32.mat", "test_32x32.mat", "extra_32x32.mat")),
    Layout("", ("train_32x32.mat", "test_32x32.mat")),
    get="They are format 2 on the page The Street View House Numbers (SVHN) Dataset, at Stanford University.",
    size=Size(classes=10, train=604_388, test=26_032),
    varied_by=("extra",),
)


@register("svhn", kind="task", year=2011, companions={"model": "resnet18", "augment": "crop_flip(pad=4, flip=False)"})
def svhn(extra: bool = True, root: str | Path | None = None) -> Source:
    """House numbers from street views: 604,388 training and 26,032 test colour images of 32 × 32, ten digits.

    Reads ``train_32x32.mat`` (73,257 images), ``extra_32x32.mat`` (531,131) and ``test_32x32.mat`` (26,032), the
    cropped digits. With ``extra=False`` the easier extra images are left out. Needs scipy. To train on 80 % and hold
    20 % out, as "Four Things Everyone Should Know to Improve Batch Normalization" does, write ``valid = 0.2``.

    Differs from the paper: nothing known.

    Licence: for non-commercial use.

    Reference: Netzer, Wang, Coates, Bissacco, Wu, Ng. Reading Digits in Natural Images with Unsupervised Feature
    Learning. NIPS workshop 2011.
    """
    checks.truth("extra", extra)
    _, folder, (train, test, *more) = SVHN.find(root)
    if extra and not more:
        raise EquipoiseError(f"{folder} lacks extra_32x32.mat: put it there, or write svhn(extra=False). {SVHN.get}")
    parts = [_read(path) for path in ([train, *more] if extra else [train])]
    images, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Source.of_files(as_split(images, labels), as_split(*_read(test)), tuple(map(str, range(10))))


def _read(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images (N, 3, 32, 32) of an array (32, 32, 3, N), and labels, where 10 stands for the digit 0."""
    images, labels = read_mat(path, "X", "y")
    labels = whole_numbers(path, "y", labels)
    if images.dtype != np.uint8 or images.shape[:3] != (32, 32, 3) or images.size != 32 * 32 * 3 * labels.size:
        expected = f"X as uint8 (32, 32, 3, {labels.size}), an image for each number in y"
        raise damaged(path, expected, f"{images.dtype} {images.shape}")
    check_labels(path, labels, 10, first=1)
    return images.reshape(32, 32, 3, -1).transpose(3, 2, 0, 1), labels % 10
