"""Handwritten digits, part of scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...core import register
from ...core.extras import require
from ..split import split_by_class
from ._base import Source, as_split

TEST_SHARE = 0.3
TEST_SEED = 0


# a batch of 128 would make two steps of an epoch of long-tailed digits
@register(
    "digits",
    kind="task",
    year=1998,
    companions={"model": "cnn_small", "batch_size": 32, "augment": "crop_flip(pad=1, flip=False)"},
)
def digits(root: str | Path | None = None) -> Source:
    """Handwritten digits of 13 people: 1,797 gray images of 8 × 8, ten classes; needs no files.

    Grey values 0 to 16 become 0 to 255. `root` is not used: the images come with scikit-learn.

    Differs from the paper: scikit-learn has the original test part only and no split of it; 30 % of each class
    (539 images), drawn with a fixed seed, are the test set here, so its writers are also in train.

    Licence: CC BY 4.0 (UCI Machine Learning Repository).

    Reference: Alpaydin, Kaynak. Cascading Classifiers. Kybernetika 1998.
    """
    require("the task digits", "sklearn")
    from sklearn.datasets import load_digits

    data = load_digits()
    images = np.rint(data.images[:, None] * 255 / 16)
    held_out, rest = split_by_class(data.target, 10, TEST_SHARE, TEST_SEED)
    test, train = (np.sort(np.concatenate(part)) for part in (held_out, rest))
    return Source(
        train=as_split(images[train], data.target[train]),
        test=as_split(images[test], data.target[test]),
        class_names=tuple(map(str, range(10))),
    )
