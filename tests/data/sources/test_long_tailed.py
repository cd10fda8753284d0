"""ImageNet-LT and Places-LT: lists in one folder, images beside them or in the folder of the whole set."""

import pytest

from equipoise.core import EquipoiseError

LISTS = "ImageNet_LT/ImageNet_LT"


def write_imagenet_lt(disk, images="imagenet", sorted_val=True):
    disk.images([f"{images}/train/n01/n01_{i}.JPEG" for i in range(4)], 10)
    disk.images([f"{images}/train/n02/n02_{i}.JPEG" for i in range(3)], 20)
    folders = ["n01/", "n02/"] if sorted_val else ["", ""]
    disk.images([f"{images}/val/{folder}ILSVRC2012_val_{i}.JPEG" for i, folder in enumerate(folders)], 30)
    disk.lines(
        f"{LISTS}_train.txt",
        *(f"train/n01/n01_{i}.JPEG 0" for i in (2, 0, 1)),
        "train/n02/n02_1.JPEG 1",
    )
    disk.lines(f"{LISTS}_val.txt", "train/n01/n01_3.JPEG 0", "train/n02/n02_0.JPEG 1")
    disk.lines(f"{LISTS}_test.txt", "val/n01/ILSVRC2012_val_0.JPEG 0", "val/n02/ILSVRC2012_val_1.JPEG 1")


@pytest.mark.parametrize("sorted_val", [True, False])
@pytest.mark.parametrize("images", ["imagenet", "ImageNet_LT", "imagenet/ILSVRC/Data/CLS-LOC"])
def test_imagenet_lt(disk, values, images, sorted_val):
    write_imagenet_lt(disk, images, sorted_val)
    source = disk.read("imagenet_lt", size=8)
    assert source.class_names == ("n01", "n02")
    assert values(source.train) == [(12, 0), (10, 0), (11, 0), (21, 1)], "the images of the list, in its order"
    assert values(source.valid) == [(13, 0), (20, 1)] and values(source.test) == [(30, 0), (31, 1)]


def test_its_own_counts_are_kept(disk):
    write_imagenet_lt(disk)
    task = disk.load("imagenet_lt(size=8)")
    assert task.class_counts.tolist() == [3, 1] and len(task.valid) == 2


def test_lists_that_do_not_fit(disk):
    write_imagenet_lt(disk)
    disk.lines(f"{LISTS}_val.txt", "train/n01/n01_2.JPEG 0", "train/n02/n02_9.JPEG 1", "train/n02/n02_0.JPEG x")
    with pytest.raises(EquipoiseError) as error:
        disk.read("imagenet_lt", size=8)
    for line in (
        "ImageNet_LT_val.txt, line 1: train/n01/n01_2.JPEG is already in ImageNet_LT_train.txt, line 1",
        "ImageNet_LT_val.txt, line 2: train/n02/n02_9.JPEG is not there",
        "ImageNet_LT_val.txt, line 3: expected a label from 0 to 1, got x",
        "Open World",
    ):
        assert line in str(error.value)
    disk.lines(f"{LISTS}_train.txt", "train/n01/n01_0.JPEG 0", "train/n02/n02_0.JPEG 0")
    with pytest.raises(EquipoiseError, match=r"expected label 0 for images of n01 alone, got n02 in .*line 2"):
        disk.read("imagenet_lt", size=8)
    disk.lines(f"{LISTS}_train.txt", "train/n01/n01_0.JPEG 0", "train/n02/n02_0.JPEG 99999999")
    with pytest.raises(EquipoiseError, match="line 2: expected a label from 0 to 1, got 99999999"):
        disk.read("imagenet_lt", size=8)


def test_the_images_are_missing(disk):
    write_imagenet_lt(disk)
    (disk.folder / "imagenet").rename(disk.folder / "elsewhere")
    with pytest.raises(EquipoiseError, match="ImageNet_LT_train.txt names were not found: put the folder train beside"):
        disk.read("imagenet_lt", size=8)


@pytest.mark.parametrize(("train", "val"), [("train/", "val/airfield/"), ("data_256/a/", "val_256/")])
def test_places_lt(disk, values, train, val):
    for name, value in (("airfield", 10), ("arch", 20)):
        disk.images([f"places365_standard/{train}{name}/{i:08}.jpg" for i in range(3)], value)
    disk.images([f"places365_standard/{val}Places365_val_{i}.jpg" for i in range(2)], 30)
    disk.lines(
        "Places_LT/Places_LT_train.txt",
        f"{train}airfield/00000000.jpg 0",
        f"{train}airfield/00000001.jpg 0",
        f"{train}arch/00000002.jpg 1",
    )
    disk.lines("Places_LT/Places_LT_val.txt", f"{train}arch/00000000.jpg 1")
    disk.lines("Places_LT/Places_LT_test.txt", f"{val}Places365_val_1.jpg 0", f"{val}Places365_val_0.jpg 1")
    source = disk.read("places_lt", size=8)
    assert [name.split("/")[-1] for name in source.class_names] == ["airfield", "arch"]
    assert values(source.train) == [(10, 0), (11, 0), (22, 1)]
    assert values(source.valid) == [(20, 1)] and values(source.test) == [(31, 0), (30, 1)]
