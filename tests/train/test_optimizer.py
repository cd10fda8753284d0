"""Optimizers and learning rates of layers, against steps worked out from their formulas."""

import copy

import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.data import load_task
from equipoise.models import create_model
from equipoise.train import Plan, Recipe, Run
from equipoise.train.optimizer import depths, make_optimizer

CPU = torch.device("cpu")
TASK = {"name": "digits", "n_max": 10}


def moved(options, steps=3, lr=0.1):
    """A small network before and after some steps with gradients of 1, by name, in double precision."""
    network = create_model("cnn_small(width=4)", 3)
    before = {name: p.detach().double().clone() for name, p in network.named_parameters()}
    optimizer, rates = make_optimizer(network, Plan(**options), CPU)
    for _ in range(steps):
        rates.set(torch.tensor(lr))
        for p in network.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
    return network, before, {name: p.detach().double() for name, p in network.named_parameters()}


def adamw(w, lr, decay, beta1, beta2=0.999, eps=1e-8, steps=3):
    """Loshchilov and Hutter, algorithm 2, for a gradient of 1."""
    m = v = 0.0
    for t in range(1, steps + 1):
        w = w * (1 - lr * decay)
        m, v = beta1 * m + (1 - beta1), beta2 * v + (1 - beta2)
        w = w - lr * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)) ** 0.5 + eps)
    return w


def sgd(w, lr, decay, momentum, steps=3):
    velocity = 0.0
    for _ in range(steps):
        velocity = momentum * velocity + 1 + decay * w
        w = w - lr * velocity
    return w


@pytest.mark.parametrize(("name", "formula"), [("adamw", adamw), ("sgd", sgd)])
def test_steps_follow_the_formula(name, formula):
    _, before, after = moved({"optimizer": name, "weight_decay": 0.05, "momentum": 0.8})
    for weight, start in before.items():
        torch.testing.assert_close(after[weight], formula(start, 0.1, 0.05, 0.8), rtol=1e-5, atol=1e-6)


def test_layers_far_from_the_head_are_slower():
    options = {"layer_decay": 0.5, "weight_decay": 0.01, "momentum": 0.0}
    _, before, after = moved(options)
    factors = {"head": 1, "stage3": 0.5, "stage2": 0.25, "stage1": 0.125, "stem": 0.0625}
    for weight, start in before.items():
        expected = sgd(start, 0.1 * factors[weight.partition(".")[0]], 0.01, 0.0)
        torch.testing.assert_close(after[weight], expected, rtol=1e-5, atol=1e-6)


def test_what_is_in_no_stage_counts_as_the_first():
    network = create_model("cnn_small(width=4)", 3)
    network.extra = torch.nn.Linear(2, 2)
    assert depths(network)[network.extra.weight] == len(network.stages)


def test_a_checkpoint_keeps_the_rates_of_layers():
    recipe = Recipe.make({"model": "cnn_small(width=4)", "epochs": 2, "layer_decay": 0.5, "optimizer": "adamw"}, TASK)
    run, again = (Run(recipe, load_task(**TASK), CPU) for _ in range(2))
    run.epoch(0)
    again.load_state_dict(copy.deepcopy(run.state_dict()))
    for r in (run, again):
        r.epoch(1)
    for p, q in zip(run.network.parameters(), again.network.parameters(), strict=True):
        assert torch.equal(p, q)


def test_keys_of_earlier_recipes_stay():
    options = {"model": "cnn_small", "epochs": 30}
    plain = Recipe.make(options, {"name": "digits"})
    assert plain.key == "4cec57388c9167a2"
    assert Recipe.make({**options, "optimizer": "sgd", "layer_decay": 1.0, "train": "all"}, {"name": "digits"}) == plain
    others = [{"optimizer": "adamw"}, {"layer_decay": 0.9}]
    assert len({plain.key, *(Recipe.make({**options, **o}, {"name": "digits"}).key for o in others)}) == 3


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"optimizer": "adam"}, "optimizer must be"),
        ({"train": "body"}, "train must be"),
        ({"layer_decay": 0.0}, "layer_decay must be above 0 and at most 1"),
        ({"layer_decay": 1.5}, "layer_decay must be above 0 and at most 1"),
        ({"layer_decay": 0.5, "train": "head"}, "layer_decay is for train"),
        ({"optimizer": "adamw", "nesterov": True}, "are for optimizer"),
        ({"optimizer": "adamw", "affine_towards": 1}, "are for optimizer"),
    ],
)
def test_mistakes(options, why):
    with pytest.raises(EquipoiseError, match=why):
        Recipe.make({"model": "cnn_small", **options})


def test_a_second_stage_has_the_optimizer_that_its_rate_is_for():
    recipe = Recipe.make({"model": "cnn_small(width=4)", "optimizer": "adamw", "lr": 1e-3, "stage": "crt"}, TASK)
    first = Run(recipe.parent, load_task(**TASK), CPU)
    second = Run(recipe, load_task(**TASK), CPU, first.network.state_dict())
    assert isinstance(first.optimizer, torch.optim.AdamW) and isinstance(second.optimizer, torch.optim.SGD)
