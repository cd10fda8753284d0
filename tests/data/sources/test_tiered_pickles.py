"""The pickles of Tiered-ImageNet become image files, once and whole; what could run code is refused."""

import io
import os
import pickle

import numpy as np
import pytest

from equipoise.core import EquipoiseError
from equipoise.data import unpack_tiered_imagenet

Image = pytest.importorskip("PIL.Image")


def encoded(value):
    buffer = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(buffer, "PNG")
    return np.frombuffer(buffer.getvalue(), np.uint8)[:, None]  # as OpenCV gives it


@pytest.fixture
def release(disk):
    base = disk.folder / "tiered-imagenet"
    base.mkdir(parents=True)
    for part, sizes in (("train", (60, 55)), ("val", (58,)), ("test", (58, 70))):
        labels = np.repeat(np.arange(len(sizes)), sizes)
        images = [encoded(label) for label in labels]
        (base / f"{part}_images_png.pkl").write_bytes(pickle.dumps(images, protocol=2))
        content = {"label_specific": labels, "label_specific_str": ["a", "b"]}
        if part == "val":
            content = {key.encode(): value for key, value in content.items()}
        (base / f"{part}_labels.pkl").write_bytes(pickle.dumps(content, protocol=2))
    return base


def test_the_release_becomes_the_task(disk, release, values):
    with pytest.raises(EquipoiseError, match="unpack_tiered_imagenet"):
        disk.read("tiered_imagenet")
    unpack_tiered_imagenet(release)
    source = disk.read("tiered_imagenet", size=8)
    assert source.class_names == ("train_000", "train_001", "test_000", "test_001")
    assert sorted(set(values(source.test))) == [(0, 0), (0, 2), (1, 1), (1, 3)], "classes keep their images"
    before = sorted(release.rglob("*.png"))
    assert len(before) == 301
    unpack_tiered_imagenet(release)
    assert sorted(release.rglob("*.png")) == before


def test_what_is_missing_or_damaged_is_named(release):
    (release / "test_labels.pkl").rename(release / "kept")
    with pytest.raises(EquipoiseError, match="tiered-imagenet lacks test_labels.pkl; give the folder that the archive"):
        unpack_tiered_imagenet(release)
    (release / "kept").rename(release / "test_labels.pkl")
    for content, message in (
        ([1, 2], "val_labels.pkl is damaged: expected a pickled dictionary with label_specific, got list"),
        ({"label_specific": [0.5]}, "val_labels.pkl is damaged"),
        ({"label_specific": [0]}, "val of .* has 58 images and 1 labels"),
    ):
        (release / "val_labels.pkl").write_bytes(pickle.dumps(content))
        with pytest.raises(EquipoiseError, match=message):
            unpack_tiered_imagenet(release)
        assert not (release / "val").exists()
    (release / "val_images_png.pkl").write_bytes(pickle.dumps(["text"]))
    with pytest.raises(
        EquipoiseError, match="val_images_png.pkl is damaged: expected a pickled list of arrays of bytes"
    ):
        unpack_tiered_imagenet(release)


class Trap:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


def test_a_malicious_pickle_is_not_run(release, tmp_path):
    (release / "train_images_png.pkl").write_bytes(pickle.dumps([Trap(str(tmp_path / "trap"))]))
    with pytest.raises(EquipoiseError, match=r"train_images_png.pkl is damaged: .*asks for .*mkdir, which is refused"):
        unpack_tiered_imagenet(release)
    assert not (tmp_path / "trap").exists()
