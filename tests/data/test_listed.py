"""One's own images in a table: path and label, perhaps part and group."""

import csv

import numpy as np
import pytest

from equipoise.core import EquipoiseError
from equipoise.data import load_task

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def images(tmp_path):
    """Two classes of 20 and 10 images, each of one grey value of its own, below tmp_path/images."""
    base = tmp_path / "images"
    for value, name in enumerate([f"{c}/{i:03}.png" for c, n in (("ant", 20), ("bee", 10)) for i in range(n)]):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((6, 6), value, np.uint8)).save(base / name)
    return base


def names(base):
    return sorted(path.relative_to(base).as_posix() for path in base.rglob("*.png"))


def table(base, rows, *columns, name="list.csv"):
    with (base / name).open("w", newline="") as file:
        csv.writer(file).writerows([columns or ("path", "label"), *rows])
    return base / name


def load(path, **options):
    return load_task(f"folder(path={str(path)!r}, size=4)", **options)


def values(split):
    return split.images[:, 0, 0, 0].tolist()


def test_a_table_of_a_folder_is_the_folder(images):
    listed = table(images, [(name, name[:3]) for name in reversed(names(images))])
    from_table, from_folder = load(listed), load(images)
    assert from_table.fingerprint == from_folder.fingerprint
    assert from_table.class_names == ("ant", "bee")
    assert values(from_table.train) == values(from_folder.train) and values(from_table.test) == values(from_folder.test)


def test_labels_are_the_tables_whatever_the_folders_are_called(images):
    rows = [(f"./{name}", "odd" if int(name[-5]) % 2 else "even") for name in names(images)]
    task = load(table(images, rows, "file_name", "label", name="metadata.csv"))  # as Hugging Face calls it
    assert task.class_names == ("even", "odd")
    assert sorted(value for split in (task.train, task.valid, task.test) for value in values(split)) == list(range(30))


def test_parts_are_the_tables(images):
    part = {0: "test", 1: "Validation"}
    rows = [(name, name[:3], part.get(i % 5, "train")) for i, name in enumerate(names(images))]
    task = load(table(images, rows, "path", "label", "split"))
    assert sorted(values(task.test)) == [*range(0, 30, 5)] and sorted(values(task.valid)) == [*range(1, 30, 5)]
    assert len(task.train) == 18


@pytest.mark.parametrize("column", ["group", "sign"])
def test_groups_of_the_table_stay_on_one_side(images, column):
    listed = table(images, [(name, name[:3], i // 5) for i, name in enumerate(names(images))], "path", "label", column)
    group = "" if column == "group" else f", group={column!r}"
    task = load_task(f"folder(path={str(listed)!r}, size=4{group})", valid=0.25)
    sides = [{value // 5 for value in values(split)} for split in (task.train, task.valid, task.test)]
    assert sum(map(len, sides)) == 6 and all(sides[a].isdisjoint(sides[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_one_image_is_one_however_its_path_is_written(images):
    ways = ["{}", "./{}", str(images) + "/{}", "../images/{}", "ant/../{}"]
    rows = [(ways[i % 5].format(name), name[:3], i // 5) for i, name in enumerate(names(images))]
    listed = table(images, rows, "path", "label", "group")
    groups = [{value // 5 for value in values(split)} for split in (load(listed).train, load(listed).test)]
    assert groups[0].isdisjoint(groups[1]), "groups hold for absolute paths too"
    with pytest.raises(EquipoiseError, match="ant/000.png is named twice"):
        load(table(images, [*rows, (str(images / "ant/000.png"), "ant", 0)], "path", "label", "group"))


def test_groups_of_the_table_and_of_a_file_are_joined(images):
    listed = table(
        images, [(n, n[:3], n if i > 3 else "film") for i, n in enumerate(names(images))], "path", "label", "group"
    )
    copies = table(images, [("ant/003.png", 1), ("ant/004.png", 1)], "path", "group", name="copies.csv")
    task = load_task(f"folder(path={str(listed)!r}, size=4, groups={str(copies)!r})")
    test = set(values(task.test))
    assert {0, 1, 2, 3, 4} <= test or not {0, 1, 2, 3, 4} & test


def test_everything_in_the_way_is_told_at_once(images, tmp_path):
    Image.fromarray(np.zeros((6, 6), np.uint8)).save(tmp_path / "outside.png")
    (images / "note.txt").write_text("no image")
    rows = [(name, name[:3]) for name in names(images)]
    wrong = [("../outside.png", "ant"), ("gone.png", "bee"), ("note.txt", "ant"), rows[0], ("ant", "bee")]
    with pytest.raises(EquipoiseError, match="names what cannot be used") as told:
        load(table(images, [*rows, *wrong]))
    lines = str(told.value).splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["../outside.png", "gone.png", "note.txt", "ant/000.png", "ant"]
    for line, why in zip(
        lines, ("leads out of", "is not there", "no format", "is named twice", "no regular file"), strict=True
    ):
        assert why.split()[-1] in line
    with pytest.raises(EquipoiseError, match="has no label"):
        load(table(images, [*rows[:-1], (rows[-1][0], "")]))
    with pytest.raises(EquipoiseError, match="has the part 'later', not train, val or test"):
        load(table(images, [(*row, "later") for row in rows], "path", "label", "split"))
    with pytest.raises(EquipoiseError, match="training images of two classes"):
        load(table(images, [(name, "thing") for name in names(images)]))


def test_parquet(images):
    parquet = pytest.importorskip("pyarrow.parquet", reason="reading Parquet needs pyarrow")
    columns = {"path": names(images), "label": [name[:3] for name in names(images)], "group": [*range(29), None]}
    parquet.write_table(__import__("pyarrow").table(columns), images / "list.parquet")
    task = load(images / "list.parquet")
    assert len(task.train) + len(task.valid) + len(task.test) == 30
