"""SVHN from small MATLAB files: shapes, the digit 0, the extra images, damage."""

import numpy as np
import pytest

from equipoise.core import EquipoiseError

FILES = {"train": 50, "extra": 5, "test": 4}


@pytest.fixture
def written(disk):
    rng, made = np.random.default_rng(0), {}
    for part, n in FILES.items():
        images, labels = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), np.arange(n, dtype=np.uint8) % 10 + 1
        rng.shuffle(labels)
        disk.mat(f"svhn/{part}_32x32.mat", X=images.transpose(1, 2, 3, 0), y=labels[:, None])
        made[part] = images, labels
    return made


def same(split, *parts):
    images = np.concatenate([images for images, _ in parts]).transpose(0, 3, 1, 2)
    labels = [0 if label == 10 else int(label) for _, made in parts for label in made]
    assert np.array_equal(split.images.numpy(), images) and split.labels.tolist() == labels


def test_train_and_extra_are_trained_on(disk, written):
    source = disk.read("svhn")
    same(source.train, written["train"], written["extra"])
    same(source.test, written["test"])
    assert source.class_names == tuple("0123456789") and source.content
    same(disk.read("svhn", extra=False).train, written["train"])
    with pytest.raises(ValueError, match="extra must be true or false"):
        disk.read("svhn", extra=2)


def test_without_the_extra_images(disk, written):
    path = disk.folder / "svhn" / "extra_32x32.mat"
    path.unlink()
    same(disk.read("svhn", extra=False).train, written["train"])
    with pytest.raises(EquipoiseError, match=r"svhn lacks extra_32x32.mat: .*extra=False.*Stanford"):
        disk.read("svhn")


def test_one_image(disk, written):
    disk.mat("svhn/test_32x32.mat", X=np.zeros((32, 32, 3, 1), np.uint8), y=np.array([[3]], np.uint8))
    assert disk.read("svhn").test.images.shape == (1, 3, 32, 32)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.array([[1], [2], [3], [11]])},
            "labels from 1 to 10, got 1 to",
        ),
        ({"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.array([[1], [2]])}, r"X as uint8 \(32, 32, 3, 2\)"),
        ({"X": np.zeros((32, 32, 3, 4)), "y": np.ones((4, 1), np.uint8)}, "got float64"),
        ({"X": np.zeros((32, 32, 3, 4), np.uint8)}, "a MATLAB file with X, y, got no y"),
    ],
)
def test_damaged_variables(disk, written, variables, message):
    disk.mat("svhn/test_32x32.mat", **variables)
    with pytest.raises(EquipoiseError, match=f"test_32x32.mat is damaged: .*{message}"):
        disk.read("svhn")


@pytest.mark.parametrize("change", [lambda b: b[:-9], lambda b: b"<html>", lambda b: b"", lambda b: b[:200]])
def test_damaged_files(disk, written, change):
    path = disk.folder / "svhn" / "train_32x32.mat"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(EquipoiseError, match=r"train_32x32.mat is damaged: expected a MATLAB file .*download it again"):
        disk.read("svhn")


def test_a_fifth_for_validation(disk, written):
    task = disk.load("svhn(extra=False)", valid=0.2)
    assert len(task.train) == 40 and len(task.valid) == 10
