"""Sets of one kind of thing, with their own splits: Flowers-102, CUB-200, Food-101, Birdsnap, SUN397, Cars, Pets."""

import numpy as np
import pytest

from equipoise.core import EquipoiseError
from equipoise.data import data_notes
from equipoise.data.frame import Frame


def refused(disk, task, *lines):
    with pytest.raises(EquipoiseError) as error:
        disk.read(task, size=8)
    for line in lines:
        assert line in str(error.value)


def test_flowers102(disk, values):
    disk.images([f"flowers102/jpg/image_{i:05}.jpg" for i in range(1, 7)], 1)
    disk.mat("flowers102/imagelabels.mat", labels=np.array([[2, 1, 1, 2, 1, 2]], np.uint8))
    disk.mat("flowers102/setid.mat", trnid=[[6, 2]], valid=[[5]], tstid=[[1, 3]])
    source = disk.read("flowers102", size=8)
    assert source.class_names == ("1", "2")
    assert values(source.train) == [(6, 1), (2, 0)]
    assert values(source.valid) == [(5, 0)] and values(source.test) == [(1, 1), (3, 0)]

    disk.mat("flowers102/setid.mat", trnid=[[6, 2]], valid=[[2]], tstid=[[1, 3]])
    refused(disk, "flowers102", "setid.mat, valid: jpg/image_00002.jpg is already in setid.mat, trnid")
    disk.mat("flowers102/setid.mat", trnid=[[6, 2]], valid=[[7]], tstid=[[1, 3]])
    refused(disk, "flowers102", "setid.mat is damaged: expected image numbers from 1 to 6, got 7 to 7")
    disk.mat("flowers102/imagelabels.mat", labels=np.array([[0.5, np.nan]]))
    refused(disk, "flowers102", "imagelabels.mat is damaged: expected labels as a list of whole numbers")


def write_cub(disk):
    base = "CUB_200_2011"
    images = ["001.Albatross/a_1.jpg", "001.Albatross/a_2.jpg", "002.Auklet/b_1.jpg", "002.Auklet/b_2.jpg"]
    disk.images([f"{base}/images/{name}" for name in images], 10)
    disk.lines(f"{base}/classes.txt", "1 001.Albatross", "2 002.Auklet")
    disk.lines(f"{base}/images.txt", *(f"{i} {name}" for i, name in enumerate(images, 1)))
    disk.lines(f"{base}/image_class_labels.txt", "1 1", "2 1", "3 2", "4 2")
    disk.lines(f"{base}/train_test_split.txt", "1 0", "2 1", "3 1", "4 0")


def test_cub200(disk, values):
    write_cub(disk)
    source = disk.read("cub200", size=8)
    assert source.class_names == ("Albatross", "Auklet")
    assert values(source.train) == [(11, 0), (12, 1)] and values(source.test) == [(10, 0), (13, 1)]


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("image_class_labels.txt", "4 3", "images.txt, image 4: expected a label from 1 to 2, got 3"),
        (
            "image_class_labels.txt",
            "3 2",
            "image_class_labels.txt is damaged: expected one line for each number, got 3",
        ),
        (
            "image_class_labels.txt",
            "5 2",
            "image_class_labels.txt is damaged: expected a line for each of the 4 images",
        ),
        (
            "train_test_split.txt",
            "4 2",
            "train_test_split.txt is damaged: expected 1 for training or 0 for test, got 2",
        ),
        ("images.txt", "4 001.Albatross/a_1.jpg", "images.txt, image 4: images/001.Albatross/a_1.jpg is already in"),
        ("images.txt", "4 002.Auklet/gone.jpg", "images.txt, image 4: images/002.Auklet/gone.jpg is not there"),
    ],
)
def test_lists_of_cub200_that_do_not_fit(disk, file, line, message):
    write_cub(disk)
    path = disk.folder / "CUB_200_2011" / file
    path.write_text("\n".join([*path.read_text().split("\n")[:3], line]))
    refused(disk, "cub200", message)


def test_food101(disk, values):
    for name, value in (("waffles", 10), ("apple_pie", 20)):
        disk.images([f"food-101/images/{name}/{i}.jpg" for i in range(3)], value)
    disk.lines("food-101/meta/classes.txt", "apple_pie", "waffles")
    disk.lines("food-101/meta/train.txt", "apple_pie/1", "apple_pie/0", "waffles/2")
    disk.lines("food-101/meta/test.txt", "waffles/0", "apple_pie/2")
    source = disk.read("food101", size=8)
    assert source.class_names == ("apple_pie", "waffles")
    assert values(source.train) == [(21, 0), (20, 0), (12, 1)] and values(source.test) == [(10, 1), (22, 0)]
    disk.lines("food-101/meta/test.txt", "waffles/9", "soup/0")
    refused(
        disk,
        "food101",
        "test.txt, line 1: images/waffles/9.jpg is not there",
        "test.txt, line 2: expected a label from 0 to 1, got class soup",
    )
    disk.lines("food-101/meta/test.txt")
    refused(disk, "food101", "has no images to test")


def write_birdsnap(disk, folder="birdsnap/images"):
    paths = [f"{name}/{i}.jpg" for name in ("Wren", "Dove") for i in range(3)]
    disk.images([f"{folder}/{path}" for path in paths if path != "Dove/1.jpg"], 10)
    disk.lines("birdsnap/species.txt", "id\tcommon\tscientific\tdir", "1\tWren\tx\tWren", '2\tO"Dove\ty\tDove')
    lines = [f"http://x\tabc\t{path}\t{1 if 'Wren' in path else 2}" for path in paths]
    disk.lines("birdsnap/images.txt", "url\tmd5\tpath\tspecies_id", *lines)
    disk.lines("birdsnap/test_images.txt", "path", "Wren/2.jpg", "Dove/0.jpg")


@pytest.mark.parametrize("folder", ["birdsnap/images", "birdsnap/download/images"])
def test_birdsnap(disk, values, folder):
    """The second dove is gone from where it was fetched; it is left out."""
    write_birdsnap(disk, folder)
    source = disk.read("birdsnap", size=8)
    assert source.class_names == ("Wren", 'O"Dove')
    assert values(source.train) == [(10, 0), (11, 0), (14, 1)] and values(source.test) == [(12, 0), (13, 1)]
    task = disk.load("birdsnap(size=8)", valid=0)
    assert any("3 training and validation images, officially 47,386" in note for note in data_notes(task, whole=True))


def test_birdsnap_mistakes(disk):
    write_birdsnap(disk)
    disk.lines("birdsnap/test_images.txt", "path", "Wren/7.jpg")
    refused(disk, "birdsnap", "test_images.txt is damaged: expected images of images.txt, got Wren/7.jpg")
    disk.lines("birdsnap/species.txt", "id\tname", "1\tWren")
    refused(disk, "birdsnap", "species.txt is damaged: expected the columns id, common, got id, name")
    disk.lines("birdsnap/species.txt", "id\tcommon", "1")
    refused(disk, "birdsnap", "species.txt is damaged: expected id, common in every line, got too few fields in line 2")


@pytest.mark.parametrize("lists", ["SUN397", "SUN397/Partitions"])
def test_sun397(disk, values, lists):
    disk.images([f"SUN397/a/abbey/sun_{i}.jpg" for i in range(2)], 10)
    disk.images([f"SUN397/a/arch/indoor/sun_{i}.jpg" for i in range(2)], 20)
    disk.lines(f"{lists}/ClassName.txt", "/a/abbey", "/a/arch/indoor")
    disk.lines(f"{lists}/Training_01.txt", "/a/arch/indoor/sun_1.jpg", "/a/abbey/sun_0.jpg")
    disk.lines(f"{lists}/Testing_01.txt", "/a/abbey/sun_1.jpg", "/a/arch/indoor/sun_0.jpg")
    source = disk.read("sun397", size=8)
    assert source.class_names == ("a/abbey", "a/arch/indoor")
    assert values(source.train) == [(21, 1), (10, 0)] and values(source.test) == [(11, 0), (20, 1)]
    disk.lines(f"{lists}/Testing_01.txt", "/a/abbey/sun_1.jpg", "/a/abbey/sun_0.jpg", "/b/barn/sun_0.jpg")
    refused(
        disk,
        "sun397",
        "Testing_01.txt, line 2: a/abbey/sun_0.jpg is already in Training_01.txt, line 2",
        "Testing_01.txt, line 3: expected a label from 0 to 1, got class b/barn",
    )


def annotations(*pairs):
    made = np.zeros((1, len(pairs)), dtype=[("bbox_x1", "O"), ("class", "O"), ("fname", "O")])
    for i, (name, label) in enumerate(pairs):
        made[0, i] = (1.0, np.array([[label]], np.uint8), name)
    return made


@pytest.mark.parametrize("place", ["", "devkit/"])
def test_cars(disk, values, place):
    disk.images([f"stanford_cars/cars_train/{i:05}.jpg" for i in (1, 2, 3)], 10)
    disk.images([f"stanford_cars/cars_test/{i:05}.jpg" for i in (1,)], 20)
    names = np.array([["Audi S4 2012", "BMW M3 2012"]], dtype=object)
    labels = f"stanford_cars/{place}cars_test_annos_withlabels.mat"
    disk.mat("stanford_cars/devkit/cars_meta.mat", class_names=names)
    train = annotations(("00003.jpg", 1), ("00001.jpg", 2))
    disk.mat("stanford_cars/devkit/cars_train_annos.mat", annotations=train)
    disk.mat(labels, annotations=annotations(("00001.jpg", 2)))
    source = disk.read("cars", size=8)
    assert source.class_names == ("Audi S4 2012", "BMW M3 2012")
    assert values(source.train) == [(12, 0), (10, 1)] and values(source.test) == [(20, 1)]
    disk.mat(labels, annotations=annotations(("00001.jpg", 3), ("00002.jpg", 1)))
    refused(
        disk,
        "cars",
        "cars_test_annos_withlabels.mat, annotation 1: expected a label from 1 to 2, got 3",
        "annotation 2: cars_test/00002.jpg is not there",
    )
    disk.mat(labels, annotations=np.zeros(3))
    refused(disk, "cars", "cars_test_annos_withlabels.mat is damaged: expected annotations with fname and class")


def test_pets(disk, values):
    disk.images([f"oxford-iiit-pet/images/{name}.jpg" for name in ("Abyssinian_1", "Abyssinian_2", "great_dane_5")], 10)
    disk.images(["oxford-iiit-pet/images/great_dane_6.jpg"], 20)
    train, test = "oxford-iiit-pet/annotations/trainval.txt", "oxford-iiit-pet/annotations/test.txt"
    disk.lines(train, "great_dane_5 2 2 1", "Abyssinian_1 1 1 1")
    disk.lines(test, "Abyssinian_2 1 1 1", "great_dane_6 2 2 1")
    source = disk.read("pets", size=8)
    assert source.class_names == ("Abyssinian", "great_dane")
    assert values(source.train) == [(12, 1), (10, 0)] and values(source.test) == [(11, 0), (20, 1)]
    assert disk.read("pets").train.images.frame == Frame(224, resize=224), "as the paper on losses tests transfer"
    disk.lines(test, "Abyssinian_2 3 1 1", "Abyssinian_9 1 1 1")
    refused(
        disk, "pets", "test.txt, line 1: expected a label from 1 to 2, got 3", "images/Abyssinian_9.jpg is not there"
    )
    disk.lines(train, "great_dane_5 2 2 1", "Abyssinian_1 2 1 1")
    refused(disk, "pets", "trainval.txt is damaged: expected breed 2 for images of great_dane alone, got Abyssinian_1")
