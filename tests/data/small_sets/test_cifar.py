"""CIFAR on small files written here, in all layouts; damaged and malicious ones."""

import os
import pickle

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.data.sources import cifar

from .files import FOLDERS, python2, read, same, write_cifar


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize(("task", "layout"), FOLDERS)
def test_cifar(tmp_path, task, layout, old):
    train, test = write_cifar(tmp_path / FOLDERS[task, layout], task, layout, old)
    source = read(task, tmp_path)
    same(source.train, *train)
    same(source.test, *test)


def test_cifar_names():
    assert cifar.CIFAR10_NAMES[3] == "cat" and len(set(cifar.CIFAR10_NAMES)) == 10
    names = cifar.CIFAR100_NAMES
    assert len(set(names)) == 100 and list(names) == sorted(names), "the fine labels are in alphabetical order"


@pytest.mark.parametrize("cut", [-1, 1, None])
def test_a_truncated_binary_file(tmp_path, cut):
    write_cifar(tmp_path, "cifar10", "binary")
    path = tmp_path / "data_batch_3.bin"
    path.write_bytes(b"" if cut is None else path.read_bytes()[:cut])
    with pytest.raises(EquipoiseError, match=r"data_batch_3\.bin is damaged: expected whole records of 3073 bytes"):
        read("cifar10", tmp_path)


def test_a_binary_label_out_of_range(tmp_path):
    write_cifar(tmp_path, "cifar100", "binary")
    path = tmp_path / "train.bin"
    content = bytearray(path.read_bytes())
    content[1] = 100
    path.write_bytes(content)
    with pytest.raises(EquipoiseError, match=r"train\.bin.*labels from 0 to 99"):
        read("cifar100", tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps([1, 2]),
        pickle.dumps({b"data": np.zeros((2, 3072), np.uint8)}, protocol=4),
        pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]}, protocol=4),
        pickle.dumps({b"data": np.zeros((2, 3071), np.uint8), b"labels": [1, 2]}, protocol=4),
        pickle.dumps({b"data": np.zeros((2, 3072), np.float32), b"labels": [1, 2]}, protocol=4),
        pickle.dumps({b"data": [1, 2], b"labels": [1, 2]}),
        pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 10]}, protocol=4),
        pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [-1, 1]}, protocol=4),
        pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": ["a", "b"]}, protocol=4),
    ],
)
def test_a_damaged_pickle(tmp_path, content):
    write_cifar(tmp_path, "cifar10", "python")
    (tmp_path / "data_batch_2").write_bytes(content)
    with pytest.raises(EquipoiseError, match=r"data_batch_2 is damaged: expected "):
        read("cifar10", tmp_path)


def test_a_truncated_pickle(tmp_path):
    write_cifar(tmp_path, "cifar10", "python")
    path = tmp_path / "test_batch"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(EquipoiseError, match=r"test_batch is damaged"):
        read("cifar10", tmp_path)


class Call:
    """Pickles as the call ``function(*args)``."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path, protocol):
    folder, trap = tmp_path / "data", tmp_path / "trap"
    write_cifar(folder, "cifar10", "python")
    evil = pickle.dumps(Call(os.mkdir, str(trap)), protocol=protocol)
    (folder / "data_batch_1").write_bytes(evil)
    with pytest.raises(EquipoiseError, match=r"data_batch_1 .*asks for .*mkdir, which is refused"):
        read("cifar10", folder)
    assert not trap.exists()
    pickle.loads(evil)
    assert trap.exists(), "the pickle of this test does nothing, so it proves nothing"


@pytest.mark.parametrize(
    "value",
    [
        Call(eval, "1"),
        Call(getattr, "x", "upper"),
        Call(np.load, "x"),
        Call(np.fromfile, "x"),
        Call(np.dtype, "O"),
        Call(np.dtype, [("a", "u1")]),
        np.array([None]),
        np.zeros(2, dtype=[("a", "u1")]),
        torch.zeros(2),
    ],
)
def test_only_numeric_arrays_are_accepted(tmp_path, value):
    write_cifar(tmp_path, "cifar100", "python")
    (tmp_path / "test").write_bytes(pickle.dumps({b"data": value, b"fine_labels": []}, protocol=4))
    with pytest.raises(EquipoiseError, match=r"test is damaged.* refused"):
        read("cifar100", tmp_path)


def test_a_pickle_cannot_change_the_types_of_numpy(tmp_path):
    write_cifar(tmp_path, "cifar10", "python")
    evil = b"\x80\x02cnumpy\ndtype\n" + python2((b"i8",)) + b"R"
    evil += python2((3, b">", None, None, None, 1, 64, 8)) + b"b."
    (tmp_path / "test_batch").write_bytes(evil)
    with pytest.raises(EquipoiseError, match="test_batch is damaged"):
        read("cifar10", tmp_path)
    assert np.dtype("i8").byteorder == "=" and np.dtype("i8").itemsize == 8
