"""A folder of one's own images: its parts, its strange files and names, and what is said of them."""

import json
import os
import socket
import sys

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.core.escaping import visible
from equipoise.data import cache, load_task

Image = pytest.importorskip("PIL.Image")


def write(base, counts, start=0):
    """One folder a name with so many images, each of one grey value of its own."""
    for name, count in counts.items():
        (base / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            Image.fromarray(np.full((6, 6), start % 256, np.uint8)).save(base / name / f"{i:03}.png")
            start += 1
    return start


def load(base, size=4, **options):
    return load_task(f"folder(path={str(base)!r}, size={size})", **options)


def values(split):
    return sorted(split.images[:, 0, 0, 0].tolist())


def counts(split, n=2):
    return torch.bincount(split.labels, minlength=n).tolist()


@pytest.mark.parametrize("name", ["val", "valid", "validation", "Val"])
def test_a_validation_folder_is_the_validation_set(tmp_path, name):
    start = write(tmp_path / "train", {"a": 10, "b": 5})
    start = write(tmp_path / name, {"a": 3, "b": 2}, start)
    write(tmp_path / "test", {"a": 4, "b": 4}, start)
    task = load(tmp_path)
    assert task.class_names == ("a", "b")
    assert values(task.train) == list(range(15)), "none are carved from train"
    assert values(task.valid) == list(range(15, 20)) and values(task.test) == list(range(20, 28))
    assert len(load(tmp_path, valid=0).valid) == 0, "none asked for, none given"
    with pytest.raises(EquipoiseError, match="has validation images of its own.*leave it out"):
        load(tmp_path, valid_per_class=1)


def test_without_a_test_folder_the_test_set_is_taken_from_train(tmp_path):
    start = write(tmp_path / "train", {"a": 10, "b": 5})
    write(tmp_path / "val", {"a": 3, "b": 2}, start)
    task = load(tmp_path)
    assert counts(task.train) == [8, 4] and counts(task.test) == [2, 1]
    assert values(task.valid) == list(range(15, 20))
    assert sorted(values(task.train) + values(task.test)) == list(range(15))


def test_a_train_folder_alone(tmp_path):
    write(tmp_path / "train", {"a": 10, "b": 5})
    assert load(tmp_path, valid=0).class_names == ("a", "b")


def test_a_class_may_be_called_train(tmp_path):
    write(tmp_path, {"train": 5, "bus": 5})
    assert load(tmp_path, valid=0).class_names == ("bus", "train")


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        (["val/a", "val/b", "test/a", "test/b"], "has test, val and no train folder"),
        (["test/a", "cat", "dog"], "has test beside cat, dog and no train folder"),
        (["train/a", "train/b", "val/a", "valid/a"], "two names of one part"),
        (["train/a", "train/b", "val/c"], "classes without training images: c"),
        (["train/a", "val/a"], "train has 1 folder; a class is a folder of images, and two are needed"),
    ],
)
def test_parts_that_do_not_fit(tmp_path, folders, message):
    for name in folders:
        write(tmp_path, {name: 2})
    with pytest.raises(EquipoiseError, match=message):
        load(tmp_path)


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_a_part_without_images_is_refused(tmp_path, part):
    for name in ("train", "val", "test"):
        write(tmp_path / name, {"a": 0 if name == part else 3, "b": 0 if name == part else 3})
    with pytest.raises(EquipoiseError, match=rf"{part} has no images: put some into its folders, or take it away"):
        load(tmp_path)


def test_a_class_of_one_image_is_trained_on(tmp_path):
    write(tmp_path, {"a": 10, "b": 1, "c": 2})
    task = load(tmp_path)
    assert task.class_counts.tolist() == [7, 1, 1]
    assert counts(task.valid, 3) == [1, 0, 0] and counts(task.test, 3) == [2, 0, 1]


def test_a_class_without_images(tmp_path):
    write(tmp_path, {"a": 10, "b": 0})
    with pytest.raises(EquipoiseError, match="class 'b' .* has no training image; add some or leave the class out"):
        load(tmp_path)


# What is no image


def test_all_broken_files_are_named_at_once(tmp_path, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("cache")
    write(tmp_path, {"a": 30, "b": 4})
    for i in range(25):
        (tmp_path / "a" / f"{i:03}.png").write_bytes(b"not a picture")
    with pytest.raises(EquipoiseError) as error:
        load(tmp_path)
    text = str(error.value)
    assert text.startswith("25 files cannot be read as images"), "those of train and of test"
    assert text.count(".png: it is none of PNG") == 20 and text.endswith("and 5 more")
    with pytest.raises(EquipoiseError, match="25 files cannot be read as images"):
        monkeypatch.setattr(cache, "WORTH_SHARING", 0)
        load(tmp_path, cache=elsewhere)
    assert not [path for path in elsewhere.glob("*") if path.is_dir() and path.suffix != ".part"]


def test_broken_files_of_all_parts_of_a_large_set_are_named(tmp_path, monkeypatch):
    from equipoise.data.image_files import ImageFiles

    write(tmp_path, {"a": 30})
    for i in (3, 29):
        (tmp_path / "a" / f"{i:03}.png").write_bytes(b"")
    with pytest.raises(EquipoiseError, match=r"2 files (.|\n)*003.png(.|\n)*029.png"):
        next(ImageFiles(sorted((tmp_path / "a").iterdir()), 4).split(10))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_and_sockets_are_not_waited_for(tmp_path):
    write(tmp_path, {"a": 5, "b": 5})
    os.mkfifo(tmp_path / "a" / "pipe.jpg")
    server = socket.socket(socket.AF_UNIX)
    try:
        folder = os.getcwd()
        os.chdir(tmp_path / "b")  # a socket's path must be short
        server.bind("socket.png")
    finally:
        os.chdir(folder)
        server.close()
    with pytest.raises(EquipoiseError, match=r"pipe\.jpg is not a regular file"):
        load(tmp_path)
    (tmp_path / "a" / "pipe.jpg").unlink()
    with pytest.raises(EquipoiseError, match=r"socket\.png is not a regular file"):
        load(tmp_path)


def test_links_inside_are_followed(tmp_path):
    base = tmp_path / "photos"
    write(base, {"a": 5, "b": 5, ".others/x": 5}, 0)
    (base / "a" / "more").symlink_to(base / ".others" / "x")
    (base / "b" / "same.png").symlink_to("000.png")
    task = load(base, valid=0)
    assert len(task.train) + len(task.test) == 16
    linked = tmp_path / "linked"
    linked.symlink_to(base)
    assert load(linked, valid=0).content == task.content, "the folder itself may be reached by a link"


@pytest.mark.parametrize("what", ["file", "folder", "class", "part"])
def test_links_that_lead_out_are_named(tmp_path, what):
    base = tmp_path / "photos"
    write(base / "train", {"a": 5, "b": 5})
    write(tmp_path / "elsewhere", {"c": 2})
    target, place = {
        "file": (tmp_path / "elsewhere" / "c" / "000.png", base / "train" / "a" / "link.png"),
        "folder": (tmp_path / "elsewhere" / "c", base / "train" / "a" / "link"),
        "class": (tmp_path / "elsewhere" / "c", base / "train" / "c"),
        "part": (tmp_path / "elsewhere", base / "val"),
    }[what]
    place.symlink_to(target)
    with pytest.raises(EquipoiseError, match=f"{place.name} is a link that leads out of the folder, to .*elsewhere"):
        load(base)


def test_links_that_never_end_or_lead_nowhere(tmp_path):
    write(tmp_path, {"a": 5, "b": 5})
    (tmp_path / "a" / "round").symlink_to(tmp_path / "a")
    with pytest.raises(EquipoiseError, match="round is a link to a folder that it lies in"):
        load(tmp_path)
    (tmp_path / "a" / "round").unlink()
    (tmp_path / "a" / "gone.png").symlink_to(tmp_path / "nothing.png")
    with pytest.raises(EquipoiseError, match=r"gone\.png is a link that leads nowhere"):
        load(tmp_path)


# Names


STRANGE = {
    "line\nbreak": "line\\nbreak",
    "red\x1b[31m": "red\\x1b[31m",
    "turned\u202egnp": "turned\\u202egnp",
    "قطة": "قطة",
    "猫\u3000犬": "猫\u3000犬",
    "👩\u200d🔬": "👩\u200d🔬",
}


def test_strange_names_are_classes_and_are_escaped(tmp_path):
    write(tmp_path, dict.fromkeys(STRANGE, 5))
    task = load(tmp_path, valid=0)
    assert sorted(task.class_names) == sorted(STRANGE.values())
    json.dumps(task.class_names, ensure_ascii=False).encode()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow names that are text only")
def test_names_that_are_no_text(tmp_path):
    write(tmp_path / "odd\udcff", {"a\udce9": 5, "b": 5})
    task = load(tmp_path / "odd\udcff", valid=0)
    assert task.class_names == ("a\\udce9", "b") and len(task.train) == 8
    json.dumps([task.class_names, task.name], ensure_ascii=False).encode()
    (tmp_path / "odd\udcff" / "b" / "x\udcff.png").write_bytes(b"")
    with pytest.raises(EquipoiseError) as error:
        load(tmp_path / "odd\udcff", valid=0)
    assert "x\\udcff.png" in str(error.value).encode().decode()


def test_a_broken_name_is_shown_escaped(tmp_path):
    write(tmp_path, {"a": 5, "b": 5})
    (tmp_path / "a" / "x\n\x1b[2J\u202egnp.png").write_bytes(b"")
    with pytest.raises(EquipoiseError) as error:
        load(tmp_path)
    assert "x\\n\\x1b[2J\\u202egnp.png" in str(error.value) and "\x1b" not in str(error.value)


def test_shown_leaves_text_alone():
    for text in ("plain", "ä é ñ", "日本", "עברית", "naïve – “quoted”"):
        assert visible(text) == text


def test_a_path_that_is_no_text_is_refused():
    with pytest.raises(EquipoiseError, match="path of folder must be printable text, not 3"):
        load_task("folder(path=3)")
