"""Activations of a trained network, layer by layer."""

import pytest
import torch

from equipoise.data import load_task
from equipoise.models import create_model
from equipoise.train import Recipe, Run
from equipoise.train.layers import FEATURES, activations, layers_of, pooled


@pytest.fixture(scope="module")
def run():
    torch.manual_seed(0)
    recipe = Recipe.make({"model": "cifar_resnet(depth=8, width=4)", "epochs": 1}, {"name": "digits", "n_max": 10})
    return Run(recipe, load_task("digits", n_max=10), torch.device("cpu"))


def by_hand(run, images):
    """The same network, stage by stage."""
    network, x, maps = run.evaluated.eval(), run.inputs(images), {}
    with torch.no_grad():
        for name in ("stem", "stage1", "stage2", "stage3"):
            x = getattr(network, name)(x)
            maps[name if name == "stem" else f"{name}.0"] = x
    return maps


def test_they_are_those_of_the_network(run):
    split = run.task.test.take(torch.arange(40))
    (batch,) = activations(run, split)
    maps = by_hand(run, split.images)
    assert list(batch.layers) == [*maps, FEATURES]
    for name, x in maps.items():
        rows = torch.stack([torch.stack([channel.double().mean() for channel in image]) for image in x])
        assert torch.allclose(batch.layers[name].double(), rows, atol=1e-6)
        zeros = sum(int(v == 0) for v in x.flatten().tolist())
        assert float(batch.nonzero[name]) == pytest.approx(1 - zeros / x.numel(), abs=1e-6)
        assert 0 < zeros < x.numel()
    assert torch.equal(batch.layers[FEATURES], batch.output.features)
    with torch.no_grad():
        assert torch.allclose(batch.output.logits, run.evaluated(run.inputs(split.images)))


def test_batches_cover_all_images_and_leave_nothing_behind(run):
    split = run.task.test
    assert sum(len(batch.output.logits) for batch in activations(run, split)) == len(split) > 512
    assert not any(module._forward_hooks for module in run.evaluated.modules())


def test_a_later_layer_does_not_change_an_earlier_one(run):
    """Torchvision's networks activate in place, after the stage that a hook looked at."""

    class InPlace(torch.nn.Module):
        def forward(self, x):
            return x.mul_(0)

    network = run.evaluated
    kept, network.stage3 = network.stage3, torch.nn.Sequential(InPlace(), network.stage3)
    try:
        (batch,) = activations(run, run.task.test.take(torch.arange(8)))
    finally:
        network.stage3 = kept
    assert float(batch.nonzero["stage2.0"]) > 0
    assert batch.layers["stage2.0"].abs().sum() > 0


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        ("cnn_small(width=2)", ["stem", "stage1", "stage2", "stage3"]),
        ("cifar_resnet(depth=14, width=2)", ["stem", *(f"stage{s}.{b}" for s in (1, 2, 3) for b in (0, 1))]),
        # the last norm and ReLU of a pre-activation network are no block: the stage itself ends with them
        ("wide_resnet(depth=10, widen=1)", ["stem", "stage1.0", "stage2.0", "stage3.0", "stage3"]),
        # its blocks are stages, its stem does nothing
        ("resnet12", ["stage1", "stage2", "stage3", "stage4"]),
    ],
)
def test_layers_are_blocks(model, layers):
    with torch.device("meta"):
        assert list(layers_of(create_model(model, num_classes=3))) == layers


def test_pooling():
    maps, tokens, rows = torch.rand(2, 3, 4, 5), torch.rand(2, 6, 3), torch.rand(2, 3)
    assert torch.allclose(pooled(maps), maps.flatten(2).mean(2))
    assert torch.allclose(pooled(tokens)[1, 2], tokens[1, :, 2].mean())
    assert torch.equal(pooled(rows), rows)
