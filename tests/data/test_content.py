"""What the data is, and that nothing read before is taken for it after it has changed."""

import os
import shutil
import threading
import time

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.data import cache, content, load_task, placed_near, placeless
from equipoise.data import load as load_module
from equipoise.data.content import content_of, content_of_tensors, digests_of
from equipoise.data.walk import image_files

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def photos(tmp_path):
    for name, value in (("cat", 40), ("dog", 200)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(10):
            paint(tmp_path / "photos" / name / f"{i}.png", value + i)
    return tmp_path / "photos"


def paint(path, value):
    Image.fromarray(np.full((8, 8), value, np.uint8)).save(path)


def named(path, size=4):
    return f"folder(path={str(path)!r}, size={size})"


def load(path, **options):
    return load_task(named(path), **options)


def test_a_set_that_comes_with_a_package_has_no_content():
    for name in ("digits", "blobs"):
        assert load_task(name).content is None


def test_a_moved_folder_is_the_same_data(photos, tmp_path):
    before = load(photos)
    photos.rename(tmp_path / "moved")
    after = load(tmp_path / "moved")
    assert after.content == before.content and after.fingerprint == before.fingerprint
    shutil.copytree(tmp_path / "moved", tmp_path / "copy")
    assert load(tmp_path / "copy").fingerprint == before.fingerprint


def change_one_pixel(photos):
    paint(photos / "cat" / "0.png", 41)


def swap_two(photos):
    for name, value in (("0.png", 41), ("1.png", 40)):
        paint(photos / "cat" / name, value)


def add(photos):
    paint(photos / "dog" / "x.png", 9)


def remove(photos):
    (photos / "dog" / "3.png").unlink()


def relabel(photos):
    (photos / "dog" / "9.png").rename(photos / "cat" / "99.png")


def rename_class(photos):
    (photos / "dog").rename(photos / "hound")


def own_test_folder(photos):
    for name in ("cat", "dog"):
        (photos / "train").mkdir(exist_ok=True)
        (photos / name).rename(photos / "train" / name)
    shutil.copytree(photos / "train", photos / "test")


CHANGES = [change_one_pixel, swap_two, add, remove, relabel, rename_class, own_test_folder]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_another_content(photos, change):
    before = load(photos)
    change(photos)
    after = load(photos)
    assert after.content != before.content and after.fingerprint != before.fingerprint


@pytest.mark.parametrize("change", CHANGES)
def test_the_data_asked_for_or_none(photos, change):
    before = load(photos)
    assert load(photos, content=before.content).fingerprint == before.fingerprint
    change(photos)
    load_module._read.cache_clear()  # another process
    load_module._published.cache_clear()
    with pytest.raises(EquipoiseError, match="are not those that were asked for"):
        load(photos, content=before.content)


def test_pixels_of_a_killed_study_are_not_taken_for_others(photos, tmp_path, monkeypatch):
    """What was shared before the images were replaced stays in the cache; nobody meets it."""
    monkeypatch.setattr(cache, "WORTH_SHARING", 0)
    before = load(photos, cache=tmp_path / "cache")
    for i in range(10):
        paint(photos / "cat" / f"{i}.png", 100 + i)
    load_module._read.cache_clear()
    load_module._published.cache_clear()
    after = load(photos, cache=tmp_path / "cache")
    assert before.train.images.in_memory().min() == 40 and after.train.images.in_memory().min() >= 100


def test_the_same_process_sees_a_change(photos):
    load(photos)
    paint(photos / "cat" / "0.png", 0)
    task = load(photos)
    assert 0 in [*task.train.images.flatten(), *task.valid.images.flatten(), *task.test.images.flatten()]


def test_images_that_change_between_looking_and_reading(photos):
    task = load_task(named(photos), decode=False)
    paint(photos / "cat" / "0.png", 0)
    with pytest.raises(EquipoiseError, match=r"0\.png.*has changed since the folder was looked through"):
        task.in_memory()


def test_parts_and_labels_cannot_be_taken_for_one_another():
    images = torch.arange(8, dtype=torch.uint8).reshape(4, 1, 1, 2)
    labels = torch.tensor([0, 1, 0, 1])
    made = [
        content_of_tensors(("a", "b"), [(images, labels), (images[:2], labels[:2])]),
        content_of_tensors(("a", "b"), [(images[:2], labels[:2]), (images, labels)]),
        content_of_tensors(("a", "b"), [(images, labels.flip(0)), (images[:2], labels[:2])]),
        content_of_tensors(("b", "a"), [(images, labels), (images[:2], labels[:2])]),
        content_of_tensors(("a", "b"), [(images.reshape(4, 2, 1, 1), labels), (images[:2], labels[:2])]),
    ]
    assert len(set(made)) == len(made)
    assert content_of(("a",), [([0, 0], b"xy"), ([], b"")]) != content_of(("a",), [([0], b"x"), ([0], b"y")])


# The index


@pytest.fixture
def hashed(monkeypatch):
    """Counts the files that are read to be hashed."""
    paths = []
    plain = content._digest
    monkeypatch.setattr(content, "_digest", lambda path: paths.append(path) or plain(path))
    return paths


def aged(photos):
    """As files are that were written a while ago."""
    for path in photos.rglob("*.png"):
        os.utime(path, ns=(10**18, 10**18))


@pytest.fixture
def settled(monkeypatch):
    """Files count as old at once: nobody can set back the time of a change."""
    monkeypatch.setattr(content, "RACY", -(10**12))


def test_unchanged_files_are_not_read_again(photos, hashed, settled):
    first = load_task(named(photos), decode=False).content
    assert len(hashed) == 20
    hashed.clear()
    assert load_task(named(photos), decode=False).content == first and not hashed
    paint(photos / "dog" / "4.png", 1)
    assert load_task(named(photos), decode=False).content != first and [p.name for p in hashed] == ["4.png"]


def test_a_change_that_keeps_size_and_time_is_seen(photos, settled):
    path = photos / "dog" / "4.png"
    before, status = load_task(named(photos), decode=False).content, path.stat()
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size and path.stat().st_mtime_ns == status.st_mtime_ns
    assert load_task(named(photos), decode=False).content != before


def test_files_of_this_moment_are_not_trusted_to_stay(photos, hashed):
    for _ in range(2):
        load_task(named(photos), decode=False)
    assert len(hashed) == 40, "within the clock's grain a file may change twice"


@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b[:-7], lambda b: b[:40] + b"\xff" + b[41:], lambda b: b + b"x" * 48]
)
def test_a_damaged_index_is_made_again(photos, hashed, settled, damage, _own_index):
    before = load_task(named(photos), decode=False).content
    (index,) = (_own_index / "content").iterdir()
    whole = index.read_bytes()
    index.write_bytes(damage(whole))
    hashed.clear()
    assert load_task(named(photos), decode=False).content == before and len(hashed) == 20
    assert index.read_bytes() == whole


def test_an_index_that_cannot_be_written_costs_time_alone(photos, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("equipoise.data.sources._files.cache_folder", lambda: tmp_path / "file")
    assert load_task(named(photos), decode=False).content


def test_many_at_once(photos, settled, _own_index):
    files, found = image_files(photos, photos), []
    threads = [
        threading.Thread(target=lambda: found.append(tuple(digests_of(files, photos, _own_index)))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and len(set(found)) == 1


def test_a_second_look_is_cheap(tmp_path, settled, _own_index):
    base = tmp_path / "big"
    base.mkdir()
    for i in range(40):
        (base / f"{i}.png").write_bytes(os.urandom(2**20))
    files = image_files(base, base)
    began = time.perf_counter()
    first = digests_of(files, base, _own_index)
    middle = time.perf_counter()
    assert digests_of(image_files(base, base), base, _own_index) == first
    assert time.perf_counter() - middle < middle - began


# Places


def test_a_place_is_no_part_of_a_name():
    assert placeless("folder(path='x', size=3)") == "folder(size=3)" and placeless("digits") == "digits"


def test_a_path_is_looked_for_beside_the_study(photos, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert placed_near("folder(path='photos', size=4)", tmp_path) == named(photos)
    assert placed_near("folder(path='absent')", tmp_path) == "folder(path='absent')"
    for name in (
        "digits",
        "folder(path=3)",
        f"folder(path={'x' * 9000!r})",
        r"folder(path='\0')",
        "folder(path='~nobody9/x')",
    ):
        assert placed_near(name, tmp_path) == name
    assert placed_near(named(photos), tmp_path / "other") == named(photos)
    monkeypatch.chdir(tmp_path)
    assert placed_near("folder(path='photos', size=4)", tmp_path) == "folder(path='photos', size=4)"
