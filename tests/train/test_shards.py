"""Training on images that stay in their shards."""

import pickle

import numpy as np
import pytest
import torch

from equipoise import data
from equipoise.data import load_task, write_shards
from equipoise.train import Fitting, Recipe, Run
from equipoise.train.feed import Cropped, Resident

Image = pytest.importorskip("PIL.Image")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """Stripes, upright or level, of any shape, some 20 in a shard."""
    base, rng = tmp_path_factory.mktemp("shards"), np.random.default_rng(0)
    for label, name in enumerate(("upright", "level")):
        (base / "photos" / name).mkdir(parents=True)
        for i in range(48):
            pixels = np.indices(rng.integers(10, 30, 2))[label] % 4 < 2
            Image.fromarray((pixels * 180).astype(np.uint8)).save(base / "photos" / name / f"{i}.png")
    index = write_shards(base / "photos", base / "shards", shard_bytes=2_500)
    assert len(data.read_index(index.parent).shards) >= 3
    return load_task(f"shards(path={str(index.parent)!r}, size=8, resize=9, keep=16)", cache=base / "cache")


def run(task, **options):
    recipe = {"model": "cnn_small(width=4)", "epochs": 2, "batch_size": 16, "augment": "resized_crop", **options}
    return Run(Recipe.make(recipe, {"name": "blobs"}, 0), task, CPU)


def metrics(logits, labels):
    return {"sum": float(logits.double().sum()), "right": float((logits.argmax(1) == labels).double().mean())}


@pytest.mark.parametrize(("augment", "feed"), [("resized_crop", Cropped), ("crop_flip(pad=1)", Resident)])
def test_a_run_that_is_taken_up_again_ends_with_the_same_numbers(task, augment, feed, tmp_path):
    whole = Fitting(run(task, augment=augment), metrics)
    assert isinstance(whole.run.feed, feed)
    begun = Fitting(run(task, augment=augment), metrics, tmp_path)
    begun.train_epoch()
    begun.save()
    again = Fitting(run(task, augment=augment), metrics, tmp_path)
    assert again.epoch == 1
    for fitting in (whole, again):
        while not fitting.ended:
            fitting.train_epoch()
    assert again.curves == whole.curves


def test_an_epoch_has_every_image_once_and_batches_of_few_classes_stay_so(task, monkeypatch):
    one = run(task)
    one.begin_epoch(0)
    assert sorted(one.order.tolist()) == list(range(len(task.train)))

    def moved(*given):
        raise AssertionError("which samples follow each other is what this sampler is for")

    monkeypatch.setattr("equipoise.train.loop.shard_by_shard", moved)
    run(task, sampler="non_iid(classes=2)").begin_epoch(0)
    with pytest.raises(AssertionError, match="follow each other"):
        run(task, sampler="class_balanced").begin_epoch(0)


def test_another_process_reads_the_same(task):
    """Loaders get the images as bytes of where they lie, not of what they are."""
    images, rows = task.train.images, torch.tensor([5, 0, 5])
    sent = pickle.dumps(images)
    assert len(sent) < 500 * len(images)
    assert torch.equal(pickle.loads(sent)[rows], images[rows])
