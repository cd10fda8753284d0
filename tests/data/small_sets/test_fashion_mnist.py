"""Fashion-MNIST on small files written here; damaged ones."""

import numpy as np
import pytest

from equipoise.core import EquipoiseError

from .files import idx, read, same, write_fashion


@pytest.mark.parametrize("packed", [False, True])
def test_fashion_mnist(tmp_path, packed):
    train, test = write_fashion(tmp_path, packed)
    source = read("fashion_mnist", tmp_path)
    same(source.train, *train)
    same(source.test, *test)
    assert len(source.class_names) == 10 and source.class_names[9] == "Ankle boot"


def test_an_idx_file_by_hand(tmp_path):
    """Two images of 1 × 3, written byte by byte."""
    from equipoise.data.sources.fashion_mnist import read_idx

    (tmp_path / "x").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255]))
    assert read_idx(tmp_path / "x", 3).tolist() == [[[1, 2, 3]], [[4, 5, 255]]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda b: b[:-1],
            r"train-images-idx3-ubyte is damaged: expected 15680 bytes for shape \(20, 28, 28\), got 15679",
        ),
        (lambda b: b + b"x", "expected 15680 bytes .* got 15681"),
        (lambda b: b[:10], "expected an idx file of bytes with 3 dimensions"),
        (lambda b: b"", "expected an idx file of bytes with 3 dimensions"),
        (lambda b: b"<html>" + b, "got a beginning of '3c 68 74 6d'"),
    ],
)
def test_damaged_idx_files(tmp_path, change, message):
    write_fashion(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(EquipoiseError, match=message):
        read("fashion_mnist", tmp_path)


@pytest.mark.parametrize(
    "change",
    [lambda b: b[:-20], lambda b: b"x" + b, lambda b: b[:40] + b"\0\0\0" + b[43:], lambda b: b[:10] + b"\xff" * 9],
)
def test_damaged_gz_files(tmp_path, change):
    write_fashion(tmp_path, packed=True)
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(EquipoiseError, match=r"t10k-images-idx3-ubyte\.gz cannot be read .*download it again"):
        read("fashion_mnist", tmp_path)


def test_labels_that_do_not_fit(tmp_path):
    write_fashion(tmp_path)
    path = tmp_path / "train-labels-idx1-ubyte"
    path.write_bytes(idx(np.zeros(19)))
    with pytest.raises(EquipoiseError, match=r"train-labels-idx1-ubyte.*expected 20 labels.*got 19"):
        read("fashion_mnist", tmp_path)
    path.write_bytes(idx(np.full(20, 10)))
    with pytest.raises(EquipoiseError, match=r"train-labels-idx1-ubyte.*labels from 0 to 9, got 10 to 10"):
        read("fashion_mnist", tmp_path)
