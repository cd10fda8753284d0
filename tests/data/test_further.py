"""Test folders from elsewhere in the layouts that are about; labels are the task's whatever the folders are called."""

import json

import numpy as np
import pytest
import torch

from equipoise.analysis import subset_logits
from equipoise.core import EquipoiseError
from equipoise.data import Split, Task, load_further

Image = pytest.importorskip("PIL.Image")
NAMES = tuple(f"n{i:02}" for i in range(12))


def task(channels=3, size=(6, 6), names=NAMES):
    empty = Split(torch.zeros(1, channels, *size, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64))
    return Task("photos", empty, empty, empty, names, "")


def write(base, levels, suffix=".png", side=9):
    """One folder a name, with images of one colour each."""
    for name, colours in levels.items():
        (base / name).mkdir(parents=True)
        for i, colour in enumerate(colours):
            Image.fromarray(np.full((side, side + 2, 3), colour, np.uint8)).save(base / name / f"{i}{suffix}")


def test_a_subset_by_name(tmp_path):
    """As ImageNet-A, -R and -Sketch are: folders with the names of some classes."""
    write(tmp_path, {"n07": [70, 71], "n02": [20], "n10": [100]})
    further = load_further(tmp_path, task())
    assert further.classes == (2, 7, 10)
    assert further.absent == tuple(name for name in NAMES if name not in ("n02", "n07", "n10"))
    assert further.split.labels.tolist() == [2, 7, 7, 10]
    images = further.split.in_memory().images
    assert images.shape == (4, 3, 6, 6) and images.dtype == torch.uint8
    assert images[:, 0, 3, 3].tolist() == [20, 70, 71, 100]
    assert subset_logits(torch.zeros(4, 12), further.classes).isfinite().nonzero()[:3, 1].tolist() == [2, 7, 10]


def test_folders_of_numbers_are_class_indices(tmp_path):
    """As ImageNet-v2 is; sorted as text 10 would come before 2."""
    write(tmp_path, {"10": [100], "2": [20], "0": [0]})
    further = load_further(tmp_path, task())
    assert dict(
        zip(further.split.labels.tolist(), further.split.in_memory().images[:, 0, 0, 0].tolist(), strict=True)
    ) == {
        10: 100,
        2: 20,
        0: 0,
    }


def test_numbers_that_are_names_are_names(tmp_path):
    write(tmp_path, {"2": [20], "0": [0]})
    further = load_further(tmp_path, task(names=("2", "1", "0")))
    assert further.classes == (0, 2) and further.absent == ("1",)
    assert further.split.in_memory().images[further.split.labels == 0][0, 0, 0, 0] == 20


@pytest.mark.parametrize("kind", ["mapping", "json", "text"])
def test_other_names(tmp_path, kind):
    write(tmp_path / "set", {"tench": [10], "carp": [11], "goldfish": [12], "no fish": [13], "n05": [50]})
    names = {"tench": "n01", "carp": "n01", "goldfish": "n03", "no fish": None}
    if kind == "json":
        (tmp_path / "names.json").write_text(json.dumps(names))
    if kind == "text":
        (tmp_path / "set" / "no fish").rename(tmp_path / "set" / "no_fish")
        (tmp_path / "names.txt").write_text("tench n01\ncarp\tn01\n\ngoldfish  n03 \nno_fish\n")
    given = {"mapping": names, "json": tmp_path / "names.json", "text": str(tmp_path / "names.txt")}[kind]
    further = load_further(tmp_path / "set", task(), given)
    assert further.classes == (1, 3, 5)
    by_class = {
        c: sorted(further.split.in_memory().images[further.split.labels == c][:, 0, 0, 0].tolist()) for c in (1, 3, 5)
    }
    assert by_class == {1: [10, 11], 3: [12], 5: [50]}


def test_grey_tasks_get_grey_images(tmp_path):
    write(tmp_path, {"n00": [(255, 0, 0)], "n01": [40]})
    images = load_further(tmp_path, task(channels=1)).split.images
    assert images.shape == (2, 1, 6, 6) and images.dtype == torch.uint8
    assert images[:, 0, 0, 0].tolist() == [76, 40]  # 0.299 of 255


def test_hidden_files_and_other_files_are_passed_over(tmp_path):
    write(tmp_path, {"n00": [1], ".cache": [2]})
    (tmp_path / "n00" / ".hidden.png").write_bytes(b"")
    (tmp_path / "n00" / "readme.txt").write_text("")
    (tmp_path / "README.md").write_text("")
    assert len(load_further(tmp_path, task()).split) == 1


def refused(message, *arguments):
    with pytest.raises(EquipoiseError, match=message):
        load_further(*arguments)


def test_mistakes(tmp_path):
    refused("is not a folder", tmp_path / "none", task())
    refused("no images of the task; its folders are: none", tmp_path, task())
    write(tmp_path / "a", {"n00": [1], "zebra": [2]})
    refused("of no class of the task: zebra; give names", tmp_path / "a", task())
    refused(r"zebra \(n99\)", tmp_path / "a", task(), {"zebra": "n99"})
    write(tmp_path / "b", {str(i): [1] for i in range(11, 18)})
    refused("12, 13, 14, 15, 16, and 1 more", tmp_path / "b", task())
    refused("6 × 8; further images can be made square", tmp_path / "a", task(size=(6, 8)))
    refused("cannot be read", tmp_path / "a", task(), tmp_path / "none.txt")
    (tmp_path / "broken.json").write_text("{")
    refused("cannot be read", tmp_path / "a", task(), tmp_path / "broken.json")
    (tmp_path / "list.json").write_text("[1]")
    refused("one JSON object", tmp_path / "a", task(), tmp_path / "list.json")
    (tmp_path / "c" / "n00").mkdir(parents=True)
    refused("no images of the task; its folders are: n00", tmp_path / "c", task())
