"""The data sets that need no files."""

import hashlib

import numpy as np
import torch

from equipoise.core import cards

from .files import read


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
