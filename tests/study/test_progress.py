"""Recording what happens to the classes while training: right, cheap, and without a trace in the run itself."""

import copy
import math

import numpy as np
import pytest
import torch

from equipoise.data import Split, load_task
from equipoise.mixing import MajorFeatureWeakening
from equipoise.models import PlanarHead
from equipoise.store import Store
from equipoise.study import How, jobs_of
from equipoise.study.run import watch_classes
from equipoise.study.run.job import do
from equipoise.study.run.watch_classes import Progress
from equipoise.train import Fitting, Recipe, Run, Stopped, fit_one

CPU = torch.device("cpu")
TASK = {"name": "digits", "imbalance": "long_tailed", "ratio": 10, "n_max": 30}


def fitting(folder=None, watched=True, valid=0.1, test=True, **options):
    task = {**TASK, "valid": valid, "test": test}
    recipe = Recipe.make({"model": "cnn_small(width=4)", "epochs": 4, **options}, task)
    run = Run(recipe, load_task(**recipe.task.__dict__), CPU)
    return Fitting(run, lambda logits, labels: {"sum": float(logits.sum())}, folder, Progress(run) if watched else None)


@pytest.mark.parametrize("options", [{}, {"head": "dropout(keep=0.5)", "mix": "mixup"}, {"head": "planar"}])
def test_a_watched_run_is_the_run_unwatched(options):
    watched, plain = fitting(**options), fitting(watched=False, **options)
    assert fit_one(watched) == fit_one(plain)
    for a, b in zip(watched.run.network.state_dict().values(), plain.run.network.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert watched.observer.arrays()["epoch"].tolist() == [1, 2, 3, 4]


def slow_gradient_lengths(network, x, labels, site):
    """In float64, one image at a time: how long the gradient of its cross-entropy is after `site`."""
    network = copy.deepcopy(network).double().eval()
    found = []
    for image, label in zip(x.double(), labels, strict=True):
        z, values = image[None], {}
        for name in network.stages:
            z = getattr(network, name)(z)
            if name == site:
                z = values["site"] = z.detach().requires_grad_()
        logits = network.head(z.mean((2, 3)))[0]
        loss = torch.logsumexp(logits, 0) - logits[label]
        (gradient,) = torch.autograd.grad(loss, values["site"])
        found.append(math.sqrt(float((gradient**2).sum())))
    return np.array(found)


def test_what_is_seen_is_what_the_formulas_say():
    watched = fitting()
    fit_one(watched)
    seen, run, train = watched.observer.arrays(), watched.run, watched.run.task.train
    network = run.network.eval()
    with torch.no_grad():
        logits = network(run.inputs(train.images))
    pred, y = logits.argmax(1).numpy(), train.labels.numpy()
    lengths = slow_gradient_lengths(network, run.inputs(train.images), train.labels, "stage1")
    for c in range(10):
        mine = y == c  # all training images, as in the paper
        assert seen["classification_ratio"][-1, c] == pytest.approx((pred == c).sum() / mine.sum())
        assert seen["train_accuracy"][-1, c] == pytest.approx((pred[mine] == c).mean())
        assert seen["mixed_layer_gradient"][-1, c] == pytest.approx(lengths[mine].mean(), rel=1e-4)
    farthest, _, bound = seen["norm_range"][-1].T
    assert seen["norm_range"].shape == (4, 4, 3) and (farthest <= bound).all()


@pytest.mark.parametrize(("mix", "site"), [("mfw(site='stage2')", "stage2"), ("mixup", "stage1")])
def test_gradients_are_looked_at_where_the_run_mixes_and_are_those_without_mixing(mix, site):
    watched = fitting(mix=mix, epochs=1)
    fit_one(watched)
    run, train = watched.run, watched.run.task.train
    assert watched.observer.site == site
    lengths = slow_gradient_lengths(run.network, run.inputs(train.images), train.labels, site)
    seen = watched.observer.arrays()["mixed_layer_gradient"][-1]
    assert seen[0] == pytest.approx(lengths[train.labels.numpy() == 0].mean(), rel=1e-4)


def test_deviation_from_the_test_features_is_sealed():
    watched = fitting(valid=0.2)
    fit_one(watched)
    run, network = watched.run, watched.run.network.eval()

    def unit_features(split):
        with torch.no_grad():
            x = network.output(run.inputs(split.images)).features.double().numpy()
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    assert not any("deviation" in name for name in watched.observer.arrays()), "it would show something of the test set"
    found = watched.observer.sealed_arrays()["feature_deviation"]
    assert found.shape == (4, 10) and np.isfinite(found).all()
    train, test = run.task.train, run.task.test
    rarest = int(np.bincount(train.labels.numpy()).argmin())  # there is one way to draw all of its images
    ours, theirs = (unit_features(split)[split.labels.numpy() == rarest] for split in (train, test))
    assert found[-1, rarest] == pytest.approx(np.linalg.norm(ours.mean(0) - theirs.mean(0)), rel=1e-4)


def test_without_a_test_set_there_is_nothing_to_seal():
    watched = fitting(test=False, epochs=1)
    fit_one(watched)
    assert watched.observer.sealed_arrays() == {} and "mixed_layer_gradient" in watched.observer.arrays()


def test_what_is_sealed_is_opened_by_name_and_noted(tmp_path):
    store, recipe = Store(tmp_path / "study").create(), Recipe.make({"model": "cnn_small(width=4)", "epochs": 1}, TASK)
    (job,) = jobs_of([recipe])
    do(job, store, How(CPU, watch_classes=True), lambda epoch, curves: None, lambda: False)
    assert "feature_deviation" not in store.progress(recipe.key) and store.opened() is None
    assert store.open_progress(recipe.key)["feature_deviation"].shape == (1, 10)
    assert store.opened().keys == {recipe.key}


@pytest.mark.parametrize("options", [{"procedure": "bbn"}, {"ema": 0.9}, {"loss": "equalization"}, {"head": "causal"}])
def test_every_kind_of_run_can_be_watched(options):
    watched = fitting(epochs=1, **options)
    fit_one(watched)
    assert np.isfinite(watched.observer.arrays()["mixed_layer_gradient"]).all()


def test_it_goes_on_after_a_stop(tmp_path):
    whole = fitting()
    fit_one(whole)
    with pytest.raises(Stopped):
        fit_one(fitting(tmp_path), stop=lambda: True)
    resumed = fitting(tmp_path)
    assert resumed.epoch == 1
    fit_one(resumed)
    for name, values in (whole.observer.arrays() | whole.observer.sealed_arrays()).items():
        found = resumed.observer.arrays() | resumed.observer.sealed_arrays()
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_few_epochs_are_looked_at():
    looks = {}
    for epochs in (1, 3, 20, 200, 2000):
        watched = fitting(epochs=epochs, batch_size=32)
        looks[epochs] = len(watched.observer.moments)
        assert max(watched.observer.moments) == epochs and (epochs == 1 or 1 in watched.observer.moments)
        if looks[epochs] > 5:  # in images of training: forward and backward count two thirds, forward a third
            task = watched.run.task
            cost = looks[epochs] * (len(task.train) / 1.5 + len(task.test) / 3.4 + 4 * 32)
            assert cost / (epochs * len(task.train)) < 0.08
    assert (looks[1], looks[3], looks[20], looks[2000]) == (1, 3, 5, 20) and 5 <= looks[200] < 20


def test_of_a_large_set_a_share_of_each_class_is_looked_at(monkeypatch):
    monkeypatch.setattr(watch_classes, "MOST", 55)
    labels = torch.tensor([0] * 500 + [1] * 50 + [2] * 3)
    part = watch_classes._part(Split(torch.zeros(553, 1, 2, 2, dtype=torch.uint8), labels))
    assert torch.bincount(part.labels).tolist() == [50, watch_classes.LEAST, 3]


def test_a_planar_head_leaves_points_to_draw():
    watched = fitting(head="planar")
    fit_one(watched)
    seen, head = watched.observer.arrays(), watched.run.network.head
    assert isinstance(head, PlanarHead) and seen["points"].shape[::2] == (4, 2)
    logits = torch.from_numpy(seen["points"][-1] @ seen["plane_weight"][-1].T + seen["plane_bias"][-1])
    ratio = torch.bincount(logits.argmax(1), minlength=10) / torch.bincount(watched.observer.part.labels, minlength=10)
    np.testing.assert_allclose(ratio, seen["classification_ratio"][-1], atol=1e-6)
    sealed, test = watched.observer.sealed_arrays(), watched.run.task.test
    with torch.no_grad():
        points = head.points(watched.run.network.eval().output(watched.run.inputs(test.images)).features)
    np.testing.assert_allclose(sealed["points"][-1], points, atol=1e-5)
    assert np.array_equal(sealed["labels"][-1], test.labels)


def test_the_experiment_in_the_plane_weakens_frequent_classes_by_half_and_rare_ones_not_at_all():
    """Counts 5000, 5000, 50 and 50, s = 0.5 and 0 (section 4 of the paper): what beta = 0.01 gives on step data."""
    weights = MajorFeatureWeakening([5000, 5000, 50, 50], alpha=2.0, beta=0.01).weights
    assert weights.tolist() == [0.5, 0.5, 0.0, 0.0]
