"""Every reader on small files written here, in all layouts; damaged, missing and malicious files."""

import gzip
import hashlib
import os
import pickle
import struct

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError, card, cards
from equipoise.data import Source, data_folders
from equipoise.data.sources import cifar


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """Hides data sets that this machine may have."""
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "share"))


def read(name, root=None) -> Source:
    return card(name, "task").factory(root=root)


def make(rng, n, num_classes, shape):
    return rng.integers(0, 256, (n, *shape), dtype=np.uint8), rng.integers(0, num_classes, n)


def same(split, images, labels):
    assert split.images.dtype == torch.uint8 and split.labels.dtype == torch.int64
    assert np.array_equal(split.images.numpy(), images) and np.array_equal(split.labels.numpy(), labels)


# Fashion-MNIST


def idx(array) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_fashion(folder, packed=False):
    rng = np.random.default_rng(0)
    sets = make(rng, 20, 10, (1, 28, 28)), make(rng, 10, 10, (1, 28, 28))
    folder.mkdir(parents=True, exist_ok=True)
    for part, (images, labels) in zip(("train", "t10k"), sets, strict=True):
        for name, array in ((f"{part}-images-idx3-ubyte", images[:, 0]), (f"{part}-labels-idx1-ubyte", labels)):
            content = idx(array)
            (folder / (name + ".gz" * packed)).write_bytes(gzip.compress(content) if packed else content)
    return sets


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


# CIFAR


def python2(value) -> bytes:
    """The codes with which Python 2 and the NumPy of 2009 pickled a value; Python 3 writes others."""
    match value:
        case None:
            return b"N"
        case int():
            return b"J" + struct.pack("<i", value)
        case bytes():
            return b"T" + struct.pack("<i", len(value)) + value
        case tuple():
            return b"(" + b"".join(map(python2, value)) + b"t"
        case list():
            return b"](" + b"".join(map(python2, value)) + b"e"
        case dict():
            return b"}(" + b"".join(python2(key) + python2(x) for key, x in value.items()) + b"u"
        case np.ndarray():
            array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + python2((0,)) + python2(b"b") + b"tR"
            dtype = b"cnumpy\ndtype\n" + python2((b"u1", 0, 1)) + b"R"
            dtype += python2((3, b"|", None, None, None, -1, -1, 0)) + b"b"
            state = b"(" + python2(1) + python2(value.shape) + dtype + python2(0) + python2(value.tobytes()) + b"t"
            return array + state + b"b"
    raise TypeError(value)


def pickled(content, old) -> bytes:
    return b"\x80\x02" + python2(content) + b"." if old else pickle.dumps(content, protocol=4)


def write_cifar(folder, task, layout, old=True):
    """Six images in each training file, four in the test file; returns them as (train, test)."""
    rng = np.random.default_rng(1)
    num_classes = 10 if task == "cifar10" else 100
    train_files = [f"data_batch_{i}" for i in range(1, 6)] if task == "cifar10" else ["train"]
    test_file = "test_batch" if task == "cifar10" else "test"
    parts = []
    folder.mkdir(parents=True, exist_ok=True)
    for name in [*train_files, test_file]:
        images, labels = make(rng, 4 if name == test_file else 6, num_classes, (3, 32, 32))
        flat, coarse = images.reshape(len(images), -1), labels // 5
        if layout == "binary":
            columns = [labels[:, None]] if task == "cifar10" else [coarse[:, None], labels[:, None]]
            (folder / f"{name}.bin").write_bytes(np.concatenate([*columns, flat], 1).astype(np.uint8).tobytes())
        else:
            content = {b"data": flat, b"batch_label": b"a batch"}
            if task == "cifar10":
                content[b"labels"] = labels.tolist()
            else:
                content |= {b"fine_labels": labels.tolist(), b"coarse_labels": coarse.tolist()}
            (folder / name).write_bytes(pickled(content, old))
        parts.append((images, labels))
    return tuple(map(np.concatenate, zip(*parts[:-1], strict=True))), parts[-1]


FOLDERS = {
    ("cifar10", "binary"): "cifar-10-batches-bin",
    ("cifar10", "python"): "cifar-10-batches-py",
    ("cifar100", "binary"): "cifar-100-binary",
    ("cifar100", "python"): "cifar-100-python",
}


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


# What the files are


def test_official_files_have_a_content(tmp_path):
    write_fashion(tmp_path / "plain")
    write_fashion(tmp_path / "packed", packed=True)
    assert read("fashion_mnist", tmp_path / "plain").content == read("fashion_mnist", tmp_path / "packed").content
    for layout in ("binary", "python"):
        write_cifar(tmp_path / layout, "cifar10", layout)
    found = {layout: read("cifar10", tmp_path / layout).content for layout in ("binary", "python")}
    assert found["binary"] == found["python"], "the same images in either layout"
    path = tmp_path / "binary" / "data_batch_1.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    assert read("cifar10", tmp_path / "binary").content != found["binary"]


# Where files are looked for


PLACES = ["", "fashion_mnist", "fashion-mnist"]


@pytest.mark.parametrize("place", PLACES)
def test_places_of_fashion_mnist(tmp_path, monkeypatch, place):
    write_fashion(tmp_path / "mine" / place, packed=True)
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "mine"))
    assert len(read("fashion_mnist").train) == 20


@pytest.mark.parametrize("place", ["", "cifar10", "cifar-10-batches-py", "cifar10/cifar-10-batches-py"])
def test_places_of_cifar10(tmp_path, monkeypatch, place):
    write_cifar(tmp_path / "mine" / place, "cifar10", "python")
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "mine"))
    assert len(read("cifar10").train) == 30


def test_the_cache_folder_and_the_system_folder_are_searched(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "empty"))
    write_cifar(tmp_path / "cache" / "equipoise" / "cifar-100-binary", "cifar100", "binary")
    write_fashion(tmp_path / "share" / "datasets" / "fashion-mnist", packed=True)
    assert len(read("cifar100").train) == 6
    assert len(read("fashion_mnist").train) == 20


def test_the_order_of_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "mine"))
    expected = [tmp_path / "mine", tmp_path / "cache" / "equipoise", tmp_path / "share" / "datasets"]
    assert list(data_folders()) == expected
    assert data_folders(tmp_path / "given") == (tmp_path / "given",), "an explicit folder is the only one"


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_the_cache_folder_without_settings(tmp_path, monkeypatch, platform, folder):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    assert data_folders()[0] == tmp_path / folder / "equipoise"


def test_missing_fashion_mnist_says_what_to_do(tmp_path):
    with pytest.raises(EquipoiseError) as error:
        read("fashion_mnist")
    text = str(error.value)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "EQUIPOISE_DATA"):
        assert name in text
    assert f"t10k-labels-idx1-ubyte into {tmp_path / 'cache' / 'equipoise' / 'fashion_mnist'} (plain or .gz)" in text
    assert "apt install dataset-fashion-mnist" in text


def test_missing_cifar_names_both_layouts(tmp_path):
    with pytest.raises(EquipoiseError) as error:
        read("cifar100", tmp_path)
    text = str(error.value)
    assert f"train.bin, test.bin into {tmp_path / 'cifar100' / 'cifar-100-binary'}, or train, test into" in text
    assert "give as root" in text and "dataset-fashion-mnist" not in text


def test_an_incomplete_set_names_what_is_lacking(tmp_path):
    write_cifar(tmp_path / "cifar-10-batches-bin", "cifar10", "binary")
    (tmp_path / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    with pytest.raises(EquipoiseError, match=r"cifar-10-batches-bin has a part of them and lacks data_batch_4\.bin\."):
        read("cifar10", tmp_path)


def test_folders_named_like_files_are_no_data(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "test").mkdir()
    with pytest.raises(EquipoiseError, match="not found"):
        read("cifar100", tmp_path)


# Sources without files


def test_digits():
    from sklearn.datasets import load_digits

    raw = load_digits()
    source = read("digits")
    assert len(source.train) + len(source.test) == 1797 and len(source.test) == 539
    assert source.train.images.shape[1:] == (1, 8, 8)
    # 8 · 255 / 16 = 127.5 is rounded to 128, and 16 becomes 255
    assert source.train.images[0, 0].tolist() == np.floor(raw.images[0] * 255 / 16 + 0.5).tolist()
    assert int(source.train.images.max()) == 255
    for c in range(10):
        n = int((raw.target == c).sum())
        assert int((source.test.labels == c).sum()) == round(0.3 * n)
    everything = torch.cat([source.train.images, source.test.images]).flatten(1).double()
    assert everything.sum() == np.floor(raw.data * 255 / 16 + 0.5).sum(), "each image is in one of the two"


def test_digits_test_set_is_fixed():
    images = read("digits").test.images.numpy()
    assert hashlib.sha256(images.tobytes()).hexdigest()[:16] == "6c3541df8fab3105", (
        "results on other images do not compare"
    )


def test_blobs():
    source = read("blobs")
    assert source.train.images.shape == (1500, 1, 8, 8) and source.test.images.shape == (600, 1, 8, 8)
    assert torch.bincount(source.train.labels).tolist() == [500] * 3
    assert torch.bincount(source.test.labels).tolist() == [200] * 3
    assert torch.equal(source.train.images, read("blobs").train.images)


def test_blobs_are_neither_trivial_nor_hopeless():
    source = read("blobs")
    train, test = source.train.images.flatten(1).double(), source.test.images.flatten(1).double()
    means = torch.stack([train[source.train.labels == c].mean(0) for c in range(3)])
    accuracy = (torch.cdist(test, means).argmin(1) == source.test.labels).double().mean()
    assert 0.8 < accuracy < 0.95


def test_every_task_is_documented():
    tasks = {entry.name: entry for entry in cards("task")}
    assert {"blobs", "cifar10", "cifar100", "digits", "fashion_mnist"} <= tasks.keys()
    for entry in tasks.values():
        assert entry.summary.endswith(".") and "Reference:" in entry.factory.__doc__
        assert "root" not in entry.parameters, "a root is no part of a recipe"
