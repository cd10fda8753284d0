"""Tiny-ImageNet: class folders for training, a list for the test set; lists that do not fit."""

import os

import pytest

from equipoise.core import EquipoiseError
from equipoise.data import data_notes

BASE = "tiny-imagenet-200"
ANNOTATIONS = f"{BASE}/val/val_annotations.txt"


def annotation(image, name):
    return f"{image}\t{name}\t0\t0\t7\t7"


@pytest.fixture
def written(disk):
    disk.lines(f"{BASE}/wnids.txt", "n02", "n01")
    disk.images([f"{BASE}/train/n01/images/n01_{i}.png" for i in range(3)], 10)
    disk.images([f"{BASE}/train/n02/images/n02_{i}.png" for i in range(2)], 20)
    disk.lines(f"{BASE}/train/n01/n01_boxes.txt", "n01_0.png\t0\t0\t7\t7")
    disk.images([f"{BASE}/val/images/val_{i}.png" for i in range(3)], 30)
    disk.images([f"{BASE}/test/images/test_0.png"], 90)
    disk.lines(ANNOTATIONS, *(annotation(f"val_{i}.png", name) for i, name in enumerate(["n02", "n01", "n02"])))
    return disk


def test_classes_are_in_the_order_of_identifiers(written, values):
    source = written.read("tiny_imagenet")
    assert source.class_names == ("n01", "n02") and source.valid is None
    assert values(source.train) == [(10, 0), (11, 0), (12, 0), (20, 1), (21, 1)]
    assert values(source.test) == [(30, 1), (31, 0), (32, 1)]
    assert source.train.images.shape == (5, 3, 64, 64)
    assert written.read("tiny_imagenet", size=16).test.images.shape == (3, 3, 16, 16)


def test_images_are_decoded_when_they_are_read(written, monkeypatch):
    monkeypatch.setattr("equipoise.data.image_files.read_image", lambda *_: pytest.fail("decoded"))
    task = written.load("tiny_imagenet(size=8)", decode=False)
    assert len(task.test) == 3 and task.content


def refused(disk, *lines):
    with pytest.raises(EquipoiseError) as error:
        disk.read("tiny_imagenet")
    for line in lines:
        assert line in str(error.value)


def test_everything_wrong_with_a_list_is_told_at_once(written):
    os.mkfifo(written.folder / BASE / "val/images/pipe.png")
    written.images(["outside.png"], 1)
    (written.folder / BASE / "val/images/link.png").symlink_to(written.folder / "outside.png")
    names = ["val_0.png", "val_9.png", "val_0.png", "pipe.png", "link.png", "../../../outside.png", "val_1.png"]
    written.lines(
        ANNOTATIONS,
        *(annotation(name, "n01") for name in names[:-1]),
        annotation(names[-1], "n77"),
        annotation("val_2.png", "1"),
    )
    refused(
        written,
        "the lists of tiny_imagenet do not fit",
        "val_annotations.txt, line 2: val/images/val_9.png is not there",
        "val_annotations.txt, line 3: val/images/val_0.png is already in val_annotations.txt, line 1",
        "line 4: val/images/pipe.png is not a regular file",
        "line 5: val/images/link.png leads out of the folder",
        "line 6: val/images/../../../outside.png leads out of the folder",
        "line 7: expected a label from 0 to 1, got class n77",
        "line 8: expected a label from 0 to 1, got class 1",
        "Stanford's course CS231n",
    )


def test_a_folder_that_leads_out(written):
    (written.folder / BASE / "val/images").rename(written.folder / "elsewhere")
    (written.folder / BASE / "val/images").symlink_to(written.folder / "elsewhere")
    refused(written, "line 1: val/images/val_0.png leads out of the folder")


def test_damaged_lists(written):
    written.lines(ANNOTATIONS, annotation("val_0.png", "n01"), "val_1.png n01")
    refused(written, "val_annotations.txt is damaged: expected 6 fields in every line, got 1 in line 2")
    (written.folder / ANNOTATIONS).write_bytes(b"\xff\xfe")
    refused(written, "val_annotations.txt is damaged: expected text in UTF-8")


def test_a_class_that_no_list_names(written):
    written.images([f"{BASE}/train/n03/images/n03_0.png"], 50)
    refused(written, "train has classes that wnids.txt does not name: n03; take them away")


def test_missing_files_are_named(disk):
    disk.images([f"{BASE}/train/n01/images/0.png"], 0)
    refused(
        disk,
        f"{BASE} has a part of them and lacks wnids.txt, val/val_annotations.txt.",
        f"Put wnids.txt, train/, val/val_annotations.txt into {disk.folder / 'tiny_imagenet' / BASE}, or give as root",
        "CS231n",
    )


def test_a_set_of_another_size_is_noted(written):
    task = written.load("tiny_imagenet(size=8)", valid=0)
    note = "tiny_imagenet is not as published: it has 2 classes, officially 200; 3 test images, officially 10,000"
    assert any(line.startswith(f"{note}. ") for line in data_notes(task))
    assert any("5 training and validation images, officially 100,000" in line for line in data_notes(task, whole=True))
