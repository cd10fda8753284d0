"""Sets whose split a fixed seed draws: Caltech-256 and step-imbalanced Tiered-ImageNet."""

import pytest
import torch

from equipoise.core import EquipoiseError


def counts(split):
    return torch.bincount(split.labels).tolist()


def overlap(source):
    """How many files are in two parts."""
    files = [path for split in source.splits.values() for path in split.images.paths]
    return len(files) - len(set(files))


@pytest.fixture(scope="module")
def caltech(tmp_path_factory, module_disk):
    disk = module_disk(tmp_path_factory.mktemp("caltech"))
    for name, n in (("001.ak47", 83), ("256.toad", 80), ("257.clutter", 4)):
        disk.images([f"256_ObjectCategories/{name}/{name[:3]}_{i:04}.jpg" for i in range(n)], 0)
    disk.images(["256_ObjectCategories/001.ak47/greg/old.jpg"], 0)
    disk.lines("256_ObjectCategories/256.toad/RENAME2", "#!/bin/sh")
    return disk


def test_caltech256(caltech):
    source = caltech.read("caltech256", size=8)
    assert source.class_names == ("ak47", "toad")
    assert [counts(source.splits[part]) for part in ("train", "valid", "test")] == [[40, 40], [10, 10], [30, 30]]
    assert not overlap(source) and not any("greg" in str(path) for path in source.train.images.paths)
    assert caltech.read("caltech256", size=8).content == source.content, "the seed is fixed"
    assert len(caltech.load("caltech256(size=8)", decode=False).valid) == 20


def test_a_class_of_caltech256_that_is_too_small(disk):
    for name in ("001.ak47", "256.toad"):
        disk.images([f"256_ObjectCategories/{name}/{i}.jpg" for i in range(5)], 0)
    with pytest.raises(
        EquipoiseError, match="class ak47 of caltech256 has 5 images; 40 to train, 10 to validate and 30"
    ):
        disk.read("caltech256", size=8)


@pytest.fixture(scope="module")
def tiered(tmp_path_factory, module_disk):
    disk = module_disk(tmp_path_factory.mktemp("tiered"))
    for name, n in (("train/n05", 60), ("train/n09", 55), ("val/n01", 58), ("test/n02", 70), ("test/n07", 58)):
        disk.images([f"tiered-imagenet/{name}/{i}.jpg" for i in range(n)], 0)
    return disk


def test_tiered_imagenet(tiered):
    """50 test and 3 validation images of each class; the rest of frequent classes and five of rare ones to train."""
    source = tiered.read("tiered_imagenet")
    assert source.class_names == ("n05", "n09", "n02", "n07"), "frequent classes come first"
    assert counts(source.train) == [7, 2, 5, 5]
    assert counts(source.valid) == [3] * 4 and counts(source.test) == [50] * 4
    assert not overlap(source) and source.train.images.shape[2:] == (84, 84)
    to_choose = tiered.read("tiered_imagenet", few="val", size=8)
    assert to_choose.class_names == ("n05", "n09", "n01") and counts(to_choose.train) == [7, 2, 5]


def test_tiered_imagenet_mistakes(tiered, disk):
    with pytest.raises(ValueError, match="few must be"):
        tiered.read("tiered_imagenet", few="train")
    for name in ("train/n05", "val/n01", "test/n02"):
        disk.images([f"tiered_imagenet/{name}/{i}.jpg" for i in range(54)], 0)
    with pytest.raises(EquipoiseError, match="class n02 of tiered_imagenet needs 58 images at least, and has 54"):
        disk.read("tiered_imagenet")
