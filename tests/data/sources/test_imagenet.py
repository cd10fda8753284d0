"""ImageNet in its three layouts; the validation images are the test set."""

import numpy as np
import pytest

from equipoise.core import EquipoiseError
from equipoise.data.frame import Frame

NAMES = ["n01440764", "n01443537", "n02000000"]
DEVKIT = "imagenet/ILSVRC2012_devkit_t12/data"
TEST = [(50, 2), (51, 0), (52, 1)]  # grey values and labels of the three validation images


def write_train(disk, base):
    for label, name in enumerate(NAMES):
        disk.images([f"{base}/train/{name}/{name}_{i}.JPEG" for i in range(2)], 10 * label)


def write_flat(disk, base):
    write_train(disk, base)
    disk.images([f"{base}/val/ILSVRC2012_val_{i:08}.JPEG" for i in (1, 2, 3)], 50)


def write_devkit(disk):
    """The challenge numbers classes in an order of its own; synsets above the classes come after them."""
    synsets = np.zeros((4, 1), dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")])
    for row, name in enumerate([NAMES[2], NAMES[1], NAMES[0], "n99999999"]):
        synsets[row, 0] = (float(row + 1), name, "a thing")
    disk.mat(f"{DEVKIT}/meta.mat", synsets=synsets)
    disk.lines(f"{DEVKIT}/ILSVRC2012_validation_ground_truth.txt", "1", "3", "2")


def check(source, values):
    assert source.class_names == tuple(NAMES) and source.valid is None
    assert values(source.train) == [(0, 0), (1, 0), (10, 1), (11, 1), (20, 2), (21, 2)]
    assert sorted(values(source.test)) == TEST


def test_class_folders(disk, values):
    write_train(disk, "imagenet")
    for value, label in TEST:
        disk.images([f"imagenet/val/{NAMES[label]}/ILSVRC2012_val_{value}.JPEG"], value)
    check(disk.read("imagenet", size=8), values)


def test_the_development_kit(disk, values):
    write_flat(disk, "imagenet")
    write_devkit(disk)
    check(disk.read("imagenet", size=8), values)
    images = disk.read("imagenet").train.images
    assert images.shape == (6, 3, 224, 224) and images.frame == Frame(224, resize=256)
    assert disk.read("imagenet", size=8, resize=12).train.images.frame == Frame(8, resize=12)


def test_kaggle(disk, values):
    write_flat(disk, "imagenet/ILSVRC/Data/CLS-LOC")
    lines = [f"ILSVRC2012_val_{i:08},{NAMES[label]} 1 2 3 4 " for i, (_, label) in enumerate(TEST, 1)]
    disk.lines("imagenet/LOC_val_solution.csv", "ImageId,PredictionString", *lines)
    check(disk.read("imagenet", size=8), values)
    disk.lines("imagenet/LOC_val_solution.csv", "ImageId,PredictionString", lines[0], "ILSVRC2012_val_00000002,")
    with pytest.raises(EquipoiseError, match=r"LOC_val_solution.csv is damaged: .* in line 3"):
        disk.read("imagenet", size=8)


def test_unsorted_images_need_labels(disk):
    write_flat(disk, "imagenet")
    with pytest.raises(EquipoiseError, match="val has no class folders: .*ILSVRC2012_devkit_t12"):
        disk.read("imagenet", size=8)


def test_a_development_kit_that_does_not_fit(disk):
    write_flat(disk, "imagenet")
    write_devkit(disk)
    truth = f"{DEVKIT}/ILSVRC2012_validation_ground_truth.txt"
    disk.lines(truth, "1", "4", "0", "2")
    with pytest.raises(EquipoiseError) as error:
        disk.read("imagenet", size=8)
    assert "ground_truth.txt, line 2: expected a label from 0 to 2, got class n99999999" in str(error.value)
    assert "ground_truth.txt, line 3: expected a label from 0 to 2, got class 0" in str(error.value)
    assert "line 4: val/ILSVRC2012_val_00000004.JPEG is not there" in str(error.value)
    disk.lines(truth)
    with pytest.raises(EquipoiseError, match="has no images to test"):
        disk.read("imagenet", size=8)
    disk.mat(f"{DEVKIT}/meta.mat", synsets=np.zeros(3))
    with pytest.raises(EquipoiseError, match="meta.mat is damaged: expected synsets with ILSVRC2012_ID and WNID"):
        disk.read("imagenet", size=8)
