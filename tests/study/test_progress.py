"""Recording what happens to the classes while training: right, cheap, and without a trace in the run itself."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from equipoise.data import load_task
from equipoise.models import PlanarHead
from equipoise.study.run.watch_classes import LEAST, Progress, _part
from equipoise.train import Fitting, Recipe, Run, Stopped, fit_one

CPU = torch.device("cpu")
TASK = {"name": "digits", "imbalance": "long_tailed", "ratio": 10, "n_max": 30}


def fitting(folder=None, watched=True, **options):
    recipe = Recipe.make({"model": "cnn_small(width=4)", "epochs": 4, **options}, TASK)
    run = Run(recipe, load_task(**recipe.task.__dict__), CPU)
    return Fitting(run, lambda logits, labels: {"sum": float(logits.sum())}, folder, Progress(run) if watched else None)


@pytest.mark.parametrize("options", [{}, {"head": "dropout(keep=0.5)", "mix": "mixup"}, {"head": "planar"}])
def test_a_watched_run_is_the_run_unwatched(options):
    watched, plain = fitting(**options), fitting(watched=False, **options)
    assert fit_one(watched) == fit_one(plain)
    for a, b in zip(watched.run.network.state_dict().values(), plain.run.network.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert watched.observer.arrays()["epoch"].tolist() == [1, 2, 3, 4]


def test_what_is_seen_is_what_the_formulas_say():
    watched = fitting()
    fit_one(watched)
    seen, run, part = watched.observer.arrays(), watched.run, watched.observer.part
    network = run.network.eval()
    with torch.no_grad():
        features = network.output(run.inputs(part.images)).features
    logits = (features @ network.head.weight.T + network.head.bias).detach()
    pred, y = logits.argmax(1).numpy(), part.labels.numpy()
    gradients = (F.softmax(logits, 1) - F.one_hot(part.labels, 10)) @ network.head.weight.detach()
    for c in range(10):
        mine = y == c
        assert seen["classification_ratio"][-1, c] == pytest.approx((pred == c).sum() / mine.sum())
        assert seen["train_accuracy"][-1, c] == pytest.approx((pred[mine] == c).mean())
        assert seen["gradient_norm"][-1, c] == pytest.approx(float(gradients[mine].norm(dim=1).mean()), rel=1e-4)
    assert seen["feature_deviation"].shape == (4, 10) and np.isfinite(seen["feature_deviation"]).all()
    farthest, _, bound = seen["norm_range"][-1].T
    assert seen["norm_range"].shape == (4, 4, 3) and (farthest <= bound).all()


def test_it_goes_on_after_a_stop(tmp_path):
    whole = fitting()
    fit_one(whole)
    with pytest.raises(Stopped):
        fit_one(fitting(tmp_path), stop=lambda: True)
    resumed = fitting(tmp_path)
    assert resumed.epoch == 1
    fit_one(resumed)
    for name, values in whole.observer.arrays().items():
        np.testing.assert_array_equal(resumed.observer.arrays()[name], values, err_msg=name)


def test_few_epochs_are_looked_at_and_few_images():
    looks = {}
    for epochs in (1, 3, 20, 200, 2000):
        watched = fitting(epochs=epochs, batch_size=32)
        looks[epochs] = len(watched.observer.moments)
        assert max(watched.observer.moments) == epochs and (epochs == 1 or 1 in watched.observer.moments)
        if epochs >= 200:  # in images of training: a forward pass counts a third, the rest is some four batches
            task, part = watched.run.task, watched.observer.part
            cost = looks[epochs] * ((len(part) + len(task.valid)) / 3.4 + 4 * 32)
            assert 0.04 < cost / (epochs * len(task.train)) < 0.09 or len(part) == len(task.train)
    assert (looks[1], looks[3], looks[20], looks[2000]) == (1, 3, 5, 20) and 5 < looks[200] < 20
    labels = torch.tensor([0] * 500 + [1] * 50 + [2] * 3)
    rows = _part(labels, 0.1)
    assert torch.bincount(labels[rows]).tolist() == [50, LEAST, 3]


def test_a_planar_head_leaves_points_to_draw():
    watched = fitting(head="planar")
    fit_one(watched)
    seen, head = watched.observer.arrays(), watched.run.network.head
    assert isinstance(head, PlanarHead) and seen["points"].shape[::2] == (4, 2)
    logits = torch.from_numpy(seen["points"][-1] @ seen["plane_weight"][-1].T + seen["plane_bias"][-1])
    ratio = torch.bincount(logits.argmax(1), minlength=10) / torch.bincount(watched.observer.part.labels, minlength=10)
    np.testing.assert_allclose(ratio, seen["classification_ratio"][-1], atol=1e-6)
