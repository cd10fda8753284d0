"""Training on images that keep their shapes: crops, loaders, checkpoints, procedures, packs."""

import numpy as np
import pytest
import torch

from equipoise.data import Frame, Ragged, Split, Task, cache, load_task
from equipoise.train import Fitting, Recipe, Run, fit, fit_one, fit_pack, predict
from equipoise.train.feed import Cropped, Resident, Streamed

CPU = torch.device("cpu")
CROP = "resized_crop(area=(0.3, 1.0))"


def images_of(labels, seed):
    """Stripes, upright for class 0 and level for class 1, in images of any shape."""
    rng = np.random.default_rng(seed)
    for label in labels:
        h, w = rng.integers(10, 30, 2)
        stripes = np.indices((h, w))[label] % 4 < 2
        yield (stripes[..., None] * 180 + rng.integers(0, 60, (h, w, 3))).astype(np.uint8)


def stripes(device=CPU):
    splits = []
    for seed, n in enumerate((48, 16, 16)):
        labels = torch.arange(n) % 2
        splits.append(Split(Ragged.of(images_of(labels.tolist(), seed), Frame(8, resize=9, keep=30)), labels))
    return Task("stripes", *splits, class_names=("upright", "level"), fingerprint="0" * 16).to(device)


def run(augment=CROP, task=None, device=CPU, seed=0, **options):
    recipe = {"model": "cnn_small(width=4)", "epochs": 3, "batch_size": 16, "augment": augment, **options}
    return Run(Recipe.make(recipe, {"name": "blobs"}, seed), task or stripes(device), device)


def metrics(logits, labels):
    return {"sum": float(logits.double().sum()), "right": float((logits.argmax(1) == labels).double().mean())}


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """The same task as files: a function that loads it, in memory or mapped."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setattr(cache, "WORTH_SHARING", 0)
    for label, name in enumerate(("upright", "level")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i, pixels in enumerate(images_of([label] * 24, label)):
            image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    name = f"folder(path={str(tmp_path / 'photos')!r}, size=8, resize=9, keep=16)"
    return lambda mapped: load_task(name, valid=0.2, cache=tmp_path / "c" if mapped else None)


def test_it_learns():
    learned = run(epochs=15, lr=0.3)
    curves = fit(learned, evaluate=metrics)
    assert isinstance(learned.feed, Cropped)
    assert curves["valid_right"][-1] >= 0.9 and curves["train_loss"][-1] < 0.7 * curves["train_loss"][0]


def test_boxes_come_from_the_whole_image_and_change_from_epoch_to_epoch():
    one = run()
    one.begin_epoch(0)
    first = one.feed.boxes.clone()
    sides = one.task.train.images.sides(one.order)
    assert (first[:, 0] + first[:, 2] <= sides[:, 0]).all() and (first[:, 1] + first[:, 3] <= sides[:, 1]).all()
    assert (first[:, 2:4] > 9).any(), "larger than in an image of the test view's size"
    place = one.feed.boxes
    one.begin_epoch(1)
    assert one.feed.boxes is place and not torch.equal(place, first), "where a captured step looks"


@pytest.mark.parametrize("augment", [CROP, "crop_flip(pad=1)", "autoaugment(area=(0.5, 1.0), pad=0)"])
def test_a_run_that_is_taken_up_again_ends_with_the_same_numbers(augment, tmp_path):
    begun = Fitting(run(augment), metrics, tmp_path)
    begun.train_epoch()
    begun.save()
    again = Fitting(run(augment), metrics, tmp_path)
    assert again.epoch == 1 and not again.notes
    whole = Fitting(run(augment), metrics)
    assert fit_one(again) == fit_one(whole)
    for a, b in zip(again.run.network.state_dict().values(), whole.run.network.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_a_streamed_run_is_the_resident_run(photos, monkeypatch):  # slow: a loader starts processes
    resident, mapped = run(task=photos(mapped=False)), run(task=photos(mapped=True))
    assert isinstance(mapped.feed, Cropped) and mapped.task.train.images.arena.mapped
    assert isinstance(run("none", photos(mapped=True)).feed, Resident)
    monkeypatch.setattr("equipoise.train.loop.feed_of", Streamed)
    streamed = run(task=photos(mapped=True))
    assert isinstance(streamed.feed, Streamed)
    curves = [fit(each, evaluate=metrics) for each in (resident, mapped, streamed)]
    assert curves[0] == curves[1] == curves[2]


def test_predictions_are_of_the_test_view():
    one = run()
    dense = one.task.test.dense()
    assert dense.images.shape == (16, 3, 8, 8)
    for name, values in predict(one, one.task.test).items():
        np.testing.assert_array_equal(values, predict(one, dense)[name])


@pytest.mark.parametrize("procedure", ["bbn", "m2m(start=0.5)"])
def test_procedures_that_draw_images_by_themselves(procedure):
    curves = fit(run(procedure=procedure, epochs=2), evaluate=metrics)
    assert len(curves["train_loss"]) == 2 and np.isfinite(curves["train_loss"]).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_runs_of_a_pack_share_one_arena_and_are_what_they_are_alone():
    device = torch.device("cuda")
    shared = stripes(device)
    alone = [fit_pack([Fitting(run(task=shared, device=device, seed=s), metrics)])[0] for s in (0, 1)]
    assert fit_pack([Fitting(run(task=shared, device=device, seed=s), metrics) for s in (0, 1)]) == alone


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_streamed_run_on_a_gpu_is_the_resident_run(photos):
    device = torch.device("cuda")
    streamed, resident = photos(mapped=True).to(device), photos(mapped=True).in_memory().to(device)
    runs = [run(task=each, device=device) for each in (streamed, resident)]
    assert isinstance(runs[0].feed, Streamed) and isinstance(runs[1].feed, Cropped)
    assert fit_pack([Fitting(runs[0], metrics)]) == fit_pack([Fitting(runs[1], metrics)])
