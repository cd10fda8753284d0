"""Tiny-ImageNet, as the Stanford course that made it packs it."""

from __future__ import annotations

from pathlib import Path

from ...core import checks, register
from ._base import Source
from ._files import files_of_classes, source_of_files
from ._lists import Listing, rows
from ._official import Layout, Size, official

TINY_IMAGENET = official(
    "tiny_imagenet",
    Layout("tiny-imagenet-200", ("wnids.txt", "train/", "val/val_annotations.txt")),
    get="tiny-imagenet-200.zip is given away by Stanford's course CS231n.",
    size=Size(classes=200, train=100_000, test=10_000),
)


@register(
    "tiny_imagenet", kind="task", year=2015, companions={"model": "resnet18", "augment": "crop_flip(pad=8, flip=True)"}
)
def tiny_imagenet(size: int = 64, root: str | Path | None = None) -> Source:
    """Tiny-ImageNet: 100,000 training and 10,000 test colour images of 64 × 64, two hundred of ImageNet's classes.

    Reads ``tiny-imagenet-200`` as it is unpacked: ``train/CLASS/images``, ``val/images`` with the classes in
    ``val/val_annotations.txt``. Classes are in the order of their WordNet identifiers. The official test images have
    no labels, so the validation images are the test set, as in all papers here.

    Differs from the paper: nothing known.

    Licence: that of ImageNet, for non-commercial research.

    Reference: Le, Yang. Tiny ImageNet Visual Recognition Challenge. Stanford CS 231N 2015.
    """
    checks.whole("size", size, 1)
    _, folder, (identifiers, train, annotations) = TINY_IMAGENET.find(root)
    base = folder.resolve()
    names = sorted(value for _, (value,) in rows(identifiers, 1))
    label_of = {name: label for label, name in enumerate(names)}
    listing = Listing(TINY_IMAGENET, base, len(names))
    for where, (image, name, *_) in rows(annotations, 6, "\t"):
        listing.add("test", where, f"val/images/{image}", label_of.get(name, f"class {name}"))
    training = files_of_classes(train, base, names, "classes that wnids.txt does not name")
    return source_of_files(base, {"train": training, **listing.files()}, names, size)
