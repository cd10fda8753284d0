"""`train = "head"`: heads on features that are made once."""

import copy
from functools import partial

import pytest
import torch
from torch import nn

from equipoise.data import Features, load_task
from equipoise.models import FrozenBody, create_model
from equipoise.study.tune.space import space_of
from equipoise.train import Mistakes, Plan, Recipe, Run, embed, embedded, fit, predict
from equipoise.train.embed import Backbone

CPU = torch.device("cpu")
MODEL = "cnn_small(width=4)"
TASK = {"name": "digits", "n_max": 20}


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """A file of weights, and a cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    torch.manual_seed(3)
    network = create_model(MODEL, 5, in_channels=1)
    torch.save(network.state_dict(), tmp_path / "small.pt")
    return str(tmp_path / "small.pt")


def recipe_of(weights, **options):
    return Recipe.make(
        {"model": MODEL, "train": "head", "weights": weights, "epochs": 3, "batch_size": 32, **options}, TASK
    )


def task_of(recipe, seed=0):
    through = partial(embedded, model=recipe.model, weights=recipe.plan.weights, device=CPU)
    return load_task(**TASK, seed=seed, through=through)


def test_the_task_has_features_in_the_place_of_its_images(weights):
    recipe = recipe_of(weights)
    task, plain = task_of(recipe, seed=4), load_task(**TASK, seed=4)
    assert task.fingerprint == plain.fingerprint and task.facts()["in_channels"] == 1
    for split, images in ((task.train, plain.train), (task.valid, plain.valid), (task.test, plain.test)):
        assert isinstance(split.images, Features) and torch.equal(split.labels, images.labels)
        assert split.images.shape == images.images.shape and torch.equal(split.dense().images, images.images)
        torch.testing.assert_close(split.images[:], embed(images.images, MODEL, weights=weights))


def test_seeds_share_one_look_at_the_images(weights, monkeypatch):
    looks = []
    look = Backbone.features
    monkeypatch.setattr(Backbone, "features", lambda self, x, *told: looks.append(len(x)) or look(self, x))
    for seed in range(3):
        task_of(recipe_of(weights), seed)
    assert len(looks) == 2  # train and test


def test_a_head_is_held_back_more_than_a_network(weights):
    """Where no decay is written; what is written stands, and the same number written or not is the same run."""
    plain, written = recipe_of(weights), recipe_of(weights, weight_decay=0.02)
    assert plain.plan.weight_decay == 0.02 and plain.key == written.key
    assert recipe_of(weights, weight_decay=0.0).plan.weight_decay == 0
    assert recipe_of(weights, train="all").plan.weight_decay == Plan().weight_decay == 2e-4
    assert space_of(recipe_of(weights, weight_decay=0.0)).axes["weight_decay"].values[1] == 0.02
    (strength,) = {group["weight_decay"] for group in Run(plain, task_of(plain), CPU).optimizer.param_groups}
    assert strength == 0.02


def test_steps_are_those_of_logistic_regression(weights):
    """Full batches without momentum, decay and warm-up: w ← w - lr · Xᵀ(softmax(Xw + b) - Y) / N, in float64."""
    options = {
        "momentum": 0.0,
        "weight_decay": 0.0,
        "warmup": 0.0,
        "schedule": "steps",
        "epochs": 5,
        "batch_size": 10_000,
    }
    recipe = recipe_of(weights, **options)
    task = task_of(recipe)
    run = Run(recipe, task, CPU)
    w, b = run.network.head.weight.detach().double().T, run.network.head.bias.detach().double()
    x = embed(task.train.dense().images, MODEL, weights=weights).double()
    x = (x - x.mean(0)) / x.std(0, correction=0).clamp_min(1e-3)
    y = nn.functional.one_hot(task.train.labels, 10).double()
    fit(run, evaluate=lambda logits, labels: {})
    for rate in run.rates.double():
        error = ((x @ w + b).softmax(1) - y) / len(x)
        w, b = w - rate * x.T @ error, b - rate * error.sum(0)
    torch.testing.assert_close(run.network.head.weight.double(), w.T, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(run.network.head.bias.double(), b, rtol=1e-4, atol=1e-5)


def test_the_trained_network_takes_images_too(weights):
    recipe = recipe_of(weights, head="cosine", ema=0.9)
    task = task_of(recipe)
    run = Run(recipe, task, CPU)
    fit(run, evaluate=lambda logits, labels: {})
    assert isinstance(run.evaluated, FrozenBody)
    from_features, from_images = predict(run, task.test), predict(run, task.test.dense())
    torch.testing.assert_close(*(torch.from_numpy(found["logits"]) for found in (from_features, from_images)))
    torch.testing.assert_close(run.mean, torch.tensor([(0.485 + 0.456 + 0.406) / 3]))


def test_methods_start_from_the_same_head(weights):
    task = task_of(recipe_of(weights))
    heads = [Run(recipe_of(weights, loss=loss), task, CPU).network.head.weight for loss in ("focal", "cross_entropy")]
    assert torch.equal(*heads)


def test_a_checkpoint_holds_the_head_alone(weights):
    recipe = recipe_of(weights, weighting="effective_number", sampler="class_balanced", accumulate=2)
    run, again = (Run(recipe, task_of(recipe), CPU) for _ in range(2))
    run.epoch(0)
    state = copy.deepcopy(run.state_dict())
    assert set(state["network"]) == {"scale.mean", "scale.std", "head.weight", "head.bias"}
    again.load_state_dict(state)
    assert run.epoch(1) == again.epoch(1)


def test_images_are_not_augmented_even_where_their_set_brings_it_along(weights):
    task = {"name": "folder(path='photos', size=32)"}
    options = {"model": MODEL, "weights": weights}
    assert Recipe.make(options, task).augment != "none"
    assert Recipe.make({**options, "train": "head"}, task).augment == "none"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"augment": "crop_flip"}, "augment = .* acts on images"),
        ({"mix": "mixup"}, "mix = .* acts on images or inside the body"),
        ({"norm": "ghost"}, "norm = .* acts in the body"),
        ({"procedure": "bbn"}, "procedure = .* trains the body"),
        ({"stage": "crt"}, "stage = .* continues from a body"),
        ({"weighting": "bias"}, "no feature maps, which bias"),
        ({"posthoc": "example_weighing"}, "as it is, .*example_weighing"),
        ({"weights": None}, "needs a network that was trained, and cnn_small.* starts at random"),
    ],
)
def test_what_needs_more_than_a_head_is_refused_with_the_reason(weights, options, why):
    with pytest.raises(Mistakes, match=why):
        recipe_of(**{"weights": weights, **options})
