"""What is found out once for a machine."""

import pytest

from equipoise.core.files import cache_folder
from equipoise.store import Store
from equipoise.study.run.hardware import choose_layouts, layouts
from equipoise.study.run.machine import remembered
from equipoise.train import Recipe


@pytest.fixture(autouse=True)
def new_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_who_is_first_decides():
    assert remembered("answer", lambda: 1, int) == 1
    assert remembered("answer", lambda: 2, int) == 1
    assert remembered("other", lambda: 2, int) == 2


def test_who_is_faster_decides():
    def find():
        remembered("answer", lambda: 1, int)  # another process, while this one is measuring
        return 2

    assert remembered("answer", find, int) == 1


@pytest.mark.parametrize("damage", ["", "{", '"x"', "[]"])
def test_what_is_damaged_is_found_again(damage):
    remembered("answer", lambda: 1, int)
    (file,) = cache_folder().iterdir()
    file.write_text(damage)
    assert remembered("answer", lambda: 2, int) == 2
    assert [path.name for path in cache_folder().iterdir()] == [file.name]


def test_a_folder_that_cannot_be_written_to(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert remembered("answer", lambda: 1, int) == 1
    assert remembered("answer", lambda: 2, int) == 2


def test_two_studies_of_one_machine_have_the_same_layout(tmp_path):
    """A network whose layouts are about equally fast was measured one way today and another way tomorrow."""
    recipe = Recipe.make({"model": "cnn_small(width=4)"}, {"name": "blobs"})
    stores = [Store(tmp_path / name).create() for name in ("a", "b")]
    for store, measured in zip(stores, ["contiguous", "channels_last"], strict=True):
        choose_layouts([recipe], store, lambda recipe, measured=measured: measured)
    assert [list(layouts(store).values()) for store in stores] == [["contiguous"]] * 2
