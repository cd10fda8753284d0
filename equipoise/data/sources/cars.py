"""Stanford Cars, with its own split."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...core import register
from ..frame import Frame
from ._base import Source, damaged
from ._files import PHOTOGRAPHS, source_of_files
from ._lists import Listing
from ._mat import read_mat
from ._official import Layout, Size, official

DEVKIT = ("devkit/cars_meta.mat", "devkit/cars_train_annos.mat")
LABELS = "cars_test_annos_withlabels.mat"
IMAGES = ("cars_train/", "cars_test/")
CARS = official(
    "cars",
    Layout("stanford_cars", (*DEVKIT, LABELS, *IMAGES)),
    Layout("stanford_cars", (*DEVKIT, f"devkit/{LABELS}", *IMAGES)),
    get="They were given away on the page Cars Dataset of Stanford's AI Lab, which is gone; copies are on Kaggle.",
    size=Size(classes=196, train=8_144, test=8_041),
)


@register("cars", kind="task", year=2013, companions=PHOTOGRAPHS)
def cars(size: int = 224, resize: int | None = None, root: str | Path | None = None) -> Source:
    """Cars by make, model and year: 8,144 training and 8,041 test photographs, 196 classes.

    Reads ``devkit/cars_meta.mat``, ``devkit/cars_train_annos.mat``, ``cars_test_annos_withlabels.mat``, there or in
    ``devkit``, and the images in ``cars_train`` and ``cars_test``. Needs scipy.

    Images are kept whole with a short side of `resize`, by default `size`, and tested on their middle square, as in the
    experiments on transfer of "What's in a Loss Function for Image Classification?".

    Differs from the paper: bounding boxes are not used.

    Licence: for non-commercial research.

    Reference: Krause, Deng, Stark, Fei-Fei. Collecting a Large-Scale Dataset of Fine-Grained Cars. Workshop on
    Fine-Grained Visual Categorization 2013.
    """
    frame = Frame(size, size if resize is None else resize)
    _, folder, (meta, train, test, _, _) = CARS.find(root)
    base = folder.resolve()
    names = [str(name) for name in np.atleast_1d(*read_mat(meta, "class_names"))]
    listing = Listing(CARS, base, len(names), first=1)
    for part, path in (("train", train), ("test", test)):
        annotations = np.atleast_1d(*read_mat(path, "annotations"))
        if not {"fname", "class"} <= set(annotations.dtype.names or ()):
            raise damaged(path, "annotations with fname and class", f"{annotations.dtype}")
        for number, each in enumerate(annotations, 1):
            where = f"{path.name}, annotation {number}"
            listing.add(part, where, f"cars_{part}/{each['fname']}", str(each["class"]))
    return source_of_files(base, listing.files(), names, frame)
