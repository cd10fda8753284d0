"""Where the files of a data set are looked for, and what is said where they are missing."""

import pytest

from equipoise.core import EquipoiseError
from equipoise.data import data_folders

from .files import read, write_cifar, write_fashion


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
