"""Images that stay on disk: the same numbers as in memory, shared by processes, decoded from files."""

import multiprocessing
import pickle

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.data import ImageFiles, OnDisk, cache, forget_cached, load_task, write_images


@pytest.fixture(autouse=True)
def small_sets_are_shared_too(monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SHARING", 0)


@pytest.fixture
def images():
    return torch.randint(0, 256, (50, 3, 4, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_it_reads_as_the_tensor_it_stands_for(images, tmp_path):
    stored = write_images(tmp_path / "x.npy", images)
    assert isinstance(stored, OnDisk) and stored.shape == images.shape and stored.numel() == images.numel()
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), images)
    index = torch.tensor([3, 3, 49, 0])
    assert torch.equal(stored[index], images[index])
    assert torch.equal(torch.cat(list(stored.split(7))), images)
    few = stored.take(torch.tensor([9, 8, 7]))
    assert few.shape == (3, 3, 4, 5) and torch.equal(few.in_memory(), images[[9, 8, 7]])
    assert torch.equal(few.take(torch.tensor([2])).in_memory(), images[[7]])


def test_it_goes_to_another_process_as_its_path(images, tmp_path):
    stored = write_images(tmp_path / "x.npy", images.repeat(200, 1, 1, 1)).take(torch.arange(5))
    message = pickle.dumps(stored)
    assert len(message) < 2000
    assert torch.equal(pickle.loads(message).in_memory(), images[:5])


def test_a_mapping_outlives_the_file(images, tmp_path):
    stored = write_images(tmp_path / "x.npy", images)
    (tmp_path / "x.npy").unlink()
    assert torch.equal(stored.take(torch.tensor([1]))[torch.tensor([0])], images[[1]])


def test_a_cached_task_is_the_task(tmp_path):
    asked = {"imbalance": "long_tailed", "ratio": 10, "seed": 3}
    plain, cached = load_task("digits", **asked), load_task("digits", **asked, cache=tmp_path / "c")
    assert isinstance(cached.train.images, OnDisk) and cached.fingerprint == plain.fingerprint
    for a, b in ((plain.train, cached.train), (plain.valid, cached.valid), (plain.test, cached.test)):
        assert torch.equal(a.images, b.images.in_memory()) and torch.equal(a.labels, b.labels)
    assert all(torch.equal(a, b) for a, b in zip(plain.mean_std, cached.mean_std, strict=True))
    assert cached.bytes_to(torch.device("cpu")) == plain.bytes_to(torch.device("cpu"))


def _load(folder, results):
    cache.WORTH_SHARING = 0
    task = load_task("digits", cache=folder)
    results.put((task.train.images[torch.tensor([5])].sum().item(), task.train.images.path.stat().st_ino))


def test_processes_that_come_at_once_share_one_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_load, args=(tmp_path / "c", results)) for _ in range(2)]
    for process in processes:
        process.start()
    found = {results.get(timeout=60) for _ in processes}
    for process in processes:
        process.join()
    assert len(found) == 1
    forget_cached(tmp_path / "c")
    assert not [p for p in (tmp_path / "c").iterdir() if p.is_dir()]


def test_a_small_set_is_read_by_each_process(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SHARING", 2**24)
    assert isinstance(load_task("digits", cache=tmp_path / "small").train.images, torch.Tensor)
    assert not [p for p in (tmp_path / "small").iterdir() if p.is_dir()]


def test_mean_and_deviation_are_those_of_all_pixels():
    task = load_task("digits")
    pixels = task.train.images.numpy().astype(np.float64) / 255
    mean, std = task.mean_std
    np.testing.assert_allclose(mean, pixels.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(std, pixels.std((0, 2, 3), ddof=1), rtol=1e-6)


@pytest.fixture
def photos(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, value, count in (("cat", 40, 10), ("dog", 200, 5)):
        (tmp_path / name).mkdir()
        for i in range(count):
            pixels = np.full((20, 40, 3), value, np.uint8)
            pixels[:, :8] = 255  # outside the middle square
            image.fromarray(pixels).save(tmp_path / name / f"{i}.{'png' if i % 2 else 'jpg'}")
        (tmp_path / name / "notes.txt").write_text("no image")
    return tmp_path


def test_a_folder_of_images_is_a_task(photos):
    task = load_task(f"folder(path={str(photos)!r}, size=8)", valid=0)
    assert task.class_names == ("cat", "dog") and task.class_counts.tolist() == [8, 4] and len(task.test) == 3
    assert task.train.images.shape == (12, 3, 8, 8)
    for image, label in zip(task.train.images, task.train.labels, strict=True):
        assert (image.float() - (40, 200)[label]).abs().max() <= 2, "the middle square alone, JPEG to rounding"
    again = load_task(f"folder(path={str(photos)!r}, size=8)", valid=0, cache=photos.parent / "cache")
    assert torch.equal(again.train.images.in_memory(), task.train.images)


def test_a_test_folder_of_its_own_is_used(photos):
    image = pytest.importorskip("PIL.Image")
    base = photos / "both"
    for part, count in (("train", 3), ("test", 2)):
        for name in ("a", "b"):
            (base / part / name).mkdir(parents=True)
            for i in range(count):
                image.fromarray(np.full((9, 9), 10 * i, np.uint8)).save(base / part / name / f"{i}.png")
    task = load_task(f"folder(path={str(base)!r}, size=4)", valid=0)
    assert len(task.train) == 6 and len(task.test) == 4 and task.train.images.shape[1:] == (3, 4, 4)
    (base / "test" / "c").mkdir()
    with pytest.raises(EquipoiseError, match="classes without training images: c"):
        load_task(f"folder(path={str(base)!r}, size=5)", valid=0)


def test_what_cannot_be_read_is_named(photos):
    (photos / "cat" / "broken.png").write_bytes(b"not a picture")
    with pytest.raises(EquipoiseError, match="broken.png cannot be read as an image"):
        load_task(f"folder(path={str(photos)!r}, size=6)", valid=0)
    with pytest.raises(EquipoiseError, match="is not a folder"):
        load_task(f"folder(path={str(photos / 'absent')!r})")
    with pytest.raises(EquipoiseError, match="has 0 folders"):
        load_task(f"folder(path={str(photos / 'cat')!r})")
    with pytest.raises(EquipoiseError, match="needs path"):
        load_task("folder")


def test_files_are_indexed_like_a_tensor(photos):
    files = ImageFiles(sorted((photos / "cat").glob("*.png")), 4)
    everything = files.in_memory()
    assert files.shape == everything.shape == (5, 3, 4, 4) and len(files) == 5
    assert torch.equal(files[torch.tensor([4, 0])], everything[[4, 0]]) and torch.equal(
        files[slice(1, 3)], everything[1:3]
    )
