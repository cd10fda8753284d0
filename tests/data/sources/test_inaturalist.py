"""iNaturalist 2017 and 2018: annotations in JSON."""

import json

import pytest

from equipoise.core import EquipoiseError

CATEGORIES = [{"id": 7, "name": "Danaus plexippus"}, {"id": 2, "name": "Morus"}, {"id": 5, "name": "Morus"}]


def table(images, labelled):
    annotations = [
        {"id": i, "image_id": image, "category_id": category} for i, (image, category) in enumerate(labelled)
    ]
    return {"images": images, "annotations": annotations, "categories": CATEGORIES}


def write(disk, year, folder):
    files = {part: [f"{folder}/Insecta/a b/{part}{i}.jpg" for i in range(4)] for part in ("train", "val")}
    made = {}
    for (part, names), value, categories in zip(files.items(), (10, 30), ([7, 7, 2, 5], [2, 5, 7, 7]), strict=True):
        disk.images([f"inaturalist{year}/{name}" for name in names], value)
        images = [{"id": 100 + i, "file_name": name, "height": 8} for i, name in enumerate(names)][::-1]
        made[part] = table(images, [(100 + i, category) for i, category in enumerate(categories)])
        save(disk, year, part, made[part])
    return made


def save(disk, year, part, content):
    disk.lines(f"inaturalist{year}/{part}{year}.json", json.dumps(content))


@pytest.mark.parametrize(("year", "folder"), [(2017, "train_val_images"), (2018, "train_val2018")])
def test_images_and_labels(disk, values, year, folder):
    write(disk, year, folder)
    source = disk.read(f"inaturalist{year}", size=8)
    assert source.class_names == ("Morus (2)", "Morus (5)", "Danaus plexippus") and source.valid is None
    assert values(source.train) == [(10, 2), (11, 2), (12, 0), (13, 1)]
    assert values(source.test) == [(30, 0), (31, 1), (32, 2), (33, 2)]


def test_annotations_that_do_not_fit(disk):
    made = write(disk, 2018, "train_val2018")
    made["val"]["annotations"] += [
        {"image_id": 100, "category_id": 7},
        {"image_id": 999, "category_id": 7},
        {"image_id": 101, "category_id": 1},
    ]
    made["val"]["images"][0]["file_name"] = "train_val2018/gone.jpg"
    save(disk, 2018, "val", made["val"])
    with pytest.raises(EquipoiseError) as error:
        disk.read("inaturalist2018", size=8)
    for line in (
        "val2018.json, annotation 4: train_val2018/gone.jpg is not there",
        "val2018.json, annotation 5: train_val2018/Insecta/a b/val0.jpg is already in val2018.json, annotation 1",
        "val2018.json, annotation 6: image 999 is not there",
        "val2018.json, annotation 7: expected a label from 0 to 2, got category 1",
    ):
        assert line in str(error.value)


@pytest.mark.parametrize("content", ["{", "[]", '{"images": []}', '{"images": [], "annotations": 3, "categories": []}'])
def test_damaged_json(disk, content):
    write(disk, 2018, "train_val2018")
    disk.lines("inaturalist2018/train2018.json", content)
    with pytest.raises(EquipoiseError, match="train2018.json is damaged: expected JSON with categories, images and"):
        disk.read("inaturalist2018", size=8)
