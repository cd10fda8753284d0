"""The paper's guidance, and all four things at once."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.core import Spec
from equipoise.models import create_model
from equipoise.norms import BatchGroupNorm2d, GhostBatchNorm2d, advise_norm, four_things


@pytest.mark.parametrize(
    ("batch_size", "options", "norm"),
    [
        (1, {}, "group"),
        (2, {}, "batch_group"),
        (2, {"overfits": False}, "group"),
        (4, {}, "ghost(ghost_size=2)"),
        (16, {}, "ghost(ghost_size=8)"),
        (128, {}, "ghost(ghost_size=16)"),
        (128, {"overfits": False}, "batch"),
        (128, {"independent": False}, "batch_group"),
        (1, {"independent": False}, "group"),
    ],
)
def test_the_norm(batch_size, options, norm):
    advice = advise_norm(batch_size, **options)
    assert advice.norm == norm and advice.norm not in advice.alternatives and len(advice.reasons) == 3
    for text in (advice.norm, *advice.alternatives):
        made = Spec.parse(text).build("norm", num_features=32)
        assert made(torch.randn(batch_size, 32, 4, 4)).shape == (batch_size, 32, 4, 4)


def test_decay_is_for_residual_networks_that_overfit():
    assert advise_norm(128).affine_decay
    assert not advise_norm(128, residual=False).affine_decay and not advise_norm(128, overfits=False).affine_decay
    assert advise_norm(128).tune_example_weight
    with pytest.raises(ValueError, match="batch_size"):
        advise_norm(0)


def test_four_things_from_start_to_finish():
    network = create_model("cnn_small(width=4)", num_classes=2)
    assert four_things(copy.deepcopy(network), 32, weight_decay=1e-3).norm == "ghost(ghost_size=16)"
    # so short a training is over before averages that keep 0.99 have arrived
    things = four_things(network, 32, weight_decay=1e-3, final=0.01, norm="ghost(ghost_size=16, decay=0.8)")
    assert len(things.replaced) == 4
    assert all(isinstance(network.get_submodule(n), GhostBatchNorm2d) for n in things.replaced)
    assert {g["weight_decay"] for g in things.param_groups} == {1e-3, 1e-3 + 0.01}  # γ and β decay too
    optimizer = torch.optim.SGD(things.param_groups, lr=0.1, momentum=0.9)
    target = torch.arange(32) % 2
    inputs = torch.randn(32, 3, 8, 8) + target[:, None, None, None]
    for _ in range(20):
        optimizer.zero_grad()
        F.cross_entropy(network(inputs), target).backward()
        optimizer.step()
    alpha = things.finish([(inputs, target)], "loss", progress=None)
    assert {network.get_submodule(n).example_weight for n in things.replaced} == {float(alpha)}
    assert (network.eval()(inputs).argmax(1) == target).float().mean() > 0.9


def test_a_norm_of_ones_own():
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    things = four_things(network, 2, 1e-3, norm=lambda c: BatchGroupNorm2d(c, 4))
    assert things.replaced == ("1",) and isinstance(network[1], BatchGroupNorm2d)
