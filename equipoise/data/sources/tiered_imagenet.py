"""Tiered-ImageNet as a step-imbalanced set: many images of some classes, five of the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...core import checks, register
from ...core.escaping import visible
from ..decode import DataError
from ..split import split_by_class
from ..walk import subfolders
from ._base import Source
from ._files import Files, chosen, files_of_classes, source_of_files
from ._official import Layout, Size, official

TEST, VALID, FEW = 50, 3, 5  # images of a class: to test and to choose on, and to train on where there are few
SEED = 0

TIERED_IMAGENET = official(
    "tiered_imagenet",
    Layout("", ("train/", "val/", "test/")),
    get="It is given away with the code of Meta-Learning for Semi-Supervised Few-Shot Classification, as pickles; "
    "equipoise.data.unpack_tiered_imagenet(FOLDER) makes image files of them.",
    size=Size(classes=511, train=430_892, valid=1_533, test=25_550),
    varied_by=("few",),
)
COMPANIONS = {"model": "resnet12", "augment": "crop_flip(pad=8, flip=True)"}


@register("tiered_imagenet", kind="task", year=2018, arxiv="1803.00676", companions=COMPANIONS)
def tiered_imagenet(few: str = "test", size: int = 84, root: str | Path | None = None) -> Source:
    """Step-imbalanced Tiered-ImageNet: 430,892 training, 1,533 validation and 25,550 test images, 511 classes.

    Reads folders ``train`` (351 classes, 448,695 images), ``val`` (97, 124,261) and ``test`` (160, 206,209) with one
    folder a class; `equipoise.data.unpack_tiered_imagenet` makes them of the pickles of the release. The classes of
    ``train`` are frequent: all their images but 53 are trained on. Those of the folder `few` are rare: five images of
    each are. Every class has 3 validation and 50 test images; a fixed seed draws all of them. With ``few="val"`` (448
    classes) hyper-parameters are chosen, with ``few="test"`` methods are compared, as in the paper on major feature
    weakening (Ye and others, Procrustean Training for Imbalanced Deep Learning).

    Differs from the paper: it does not say which images it drew. It was made to learn from few examples of classes not
    seen before; here all its classes are learned together.

    Licence: that of ImageNet, for non-commercial research.

    Reference: Ren, Triantafillou, Ravi, Snell, Swersky, Tenenbaum, Larochelle, Zemel. Meta-Learning for
    Semi-Supervised Few-Shot Classification. ICLR 2018.
    """
    checks.one_of("few", few, ["val", "test"])
    checks.whole("size", size, 1)
    base = TIERED_IMAGENET.find(root).folder.resolve()
    major, minor = subfolders(base / "train", base), subfolders(base / few, base)
    frequent, rare = files_of_classes(base / "train", base, major), files_of_classes(base / few, base, minor)
    files = frequent[0] + rare[0], np.concatenate([frequent[1], rare[1] + len(major)])
    return source_of_files(base, _drawn(files, major, minor), major + minor, size, f"tiered_imagenet {few}")


def _drawn(files: Files, major: list[str], minor: list[str]) -> dict[str, Files]:
    names = major + minor
    _, pools = split_by_class(files[1], len(names), 0, SEED)
    wanted = [TEST + VALID + (1 if label < len(major) else FEW) for label in range(len(names))]
    for name, pool, least in zip(names, pools, wanted, strict=True):
        if len(pool) < least:
            raise DataError(
                f"class {visible(name)} of tiered_imagenet needs {least} images at least, and has {len(pool)}"
            )
    ends = [None if label < len(major) else least for label, least in enumerate(wanted)]
    return {
        "train": chosen(files, [pool[TEST + VALID : end] for pool, end in zip(pools, ends, strict=True)]),
        "valid": chosen(files, [pool[TEST : TEST + VALID] for pool in pools]),
        "test": chosen(files, [pool[:TEST] for pool in pools]),
    }
