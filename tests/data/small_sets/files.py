"""Small files in the layouts of Fashion-MNIST and CIFAR."""

import gzip
import pickle
import struct

import numpy as np
import torch

from equipoise.core import card
from equipoise.data import Source


def read(name, root=None) -> Source:
    return card(name, "task").factory(root=root)


def make(rng, n, num_classes, shape):
    return rng.integers(0, 256, (n, *shape), dtype=np.uint8), rng.integers(0, num_classes, n)


def same(split, images, labels):
    assert split.images.dtype == torch.uint8 and split.labels.dtype == torch.int64
    assert np.array_equal(split.images.numpy(), images) and np.array_equal(split.labels.numpy(), labels)


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
