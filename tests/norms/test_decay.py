"""Parameter groups: who decays, how much, towards what."""

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.models import create_model
from equipoise.norms import GhostBatchNorm2d, decay_groups, pull_towards_one


def strength_of(groups, parameter):
    (group,) = [g for g in groups if any(p is parameter for p in g["params"])]
    return group["weight_decay"], group["decay_towards"]


def network():
    return nn.Sequential(nn.Conv2d(3, 4, 3), GhostBatchNorm2d(4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))


def test_every_parameter_once():
    net = network()
    for options in ({}, {"affine": False}, {"final": 0.3}, {"towards": 1}):
        groups = decay_groups(net, 0.1, **options)
        assert sorted(id(p) for g in groups for p in g["params"]) == sorted(id(p) for p in net.parameters())


def test_affine_on_and_off_final_and_prior_bias():
    net = network()
    groups = decay_groups(net, 0.1, affine=False, final=0.3)
    assert strength_of(groups, net[1].weight) == strength_of(groups, net[1].bias) == (0.0, 0.0)
    assert strength_of(groups, net[0].weight) == strength_of(groups, net[4].bias) == (0.1, 0.0)
    assert strength_of(groups, net[4].weight) == (pytest.approx(0.4), 0.0)
    assert strength_of(decay_groups(net, 0.1), net[1].weight) == (0.1, 0.0)
    model = create_model("cnn_small(width=4)", 3, head="linear(prior='others')")
    assert strength_of(decay_groups(model, 0.1), model.head.bias) == (0.0, 0.0)


def test_towards_one_is_for_gamma_alone():
    net = network()
    groups = decay_groups(net, 0.1, towards=1)
    assert strength_of(groups, net[1].weight) == (0.1, 1) and strength_of(groups, net[1].bias) == (0.1, 0.0)
    assert strength_of(decay_groups(net, 0.1, towards=1, affine=False), net[1].weight) == (0.0, 0.0)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_sgd_follows_the_gradient_of_the_penalty(nesterov):
    """Against float64 by hand: velocity = 0.9 velocity + grad + λ(γ - 1)."""
    norm = nn.BatchNorm1d(2).double()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([3.0, -1.0]))
        norm.bias.copy_(torch.tensor([2.0, -2.0]))
    groups = decay_groups(norm, 0.2, towards=1)
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=nesterov)
    gamma, beta, vg, vb = np.array([3.0, -1.0]), np.array([2.0, -2.0]), 0.0, 0.0
    for step in range(5):
        gradient = np.array([0.5, -1.0]) * (step + 1)
        norm.weight.grad, norm.bias.grad = torch.tensor(gradient), torch.tensor(gradient)
        pull_towards_one(optimizer.param_groups)
        optimizer.step()
        gg, gb = gradient + 0.2 * (gamma - 1), gradient + 0.2 * beta
        vg, vb = (gg, gb) if step == 0 else (0.9 * vg + gg, 0.9 * vb + gb)
        gamma = gamma - 0.1 * (gg + 0.9 * vg if nesterov else vg)
        beta = beta - 0.1 * (gb + 0.9 * vb if nesterov else vb)
    np.testing.assert_allclose(norm.weight.detach(), gamma, rtol=1e-12)
    np.testing.assert_allclose(norm.bias.detach(), beta, rtol=1e-12)


def test_parameters_without_gradient_are_left_alone():
    norm = nn.BatchNorm1d(2)
    pull_towards_one(decay_groups(norm, 0.2, towards=1))
    assert norm.weight.grad is None


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="towards must be 0 or 1, not 0.5"):
        decay_groups(network(), 0.1, towards=0.5)
    with pytest.raises(ValueError, match="neither a head nor a Linear"):
        decay_groups(nn.Sequential(nn.Conv2d(1, 1, 1)), 0.1, final=0.1)
    assert decay_groups(nn.Sequential(nn.Conv2d(1, 1, 1)), 0.1)[0]["weight_decay"] == 0.1
