"""A head on a network that stays as it is."""

import copy

import pytest
import torch
from torch import nn

from equipoise.models import FrozenBody, LinearHead, create_model


@pytest.fixture
def network():
    torch.manual_seed(0)
    body = create_model("cnn_small(width=4)", 2)
    for module in body.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
    return FrozenBody(body, 5, LinearHead)


def images():
    return torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def test_standardized_features_have_mean_0_and_deviation_1(network):
    values = torch.randn(100, network.feature_dim, dtype=torch.float64) * 3 + 7
    values[:, 0] = 4  # never varies
    network.scale.fit(values.mean(0), values.std(0, correction=0))
    scaled = network.scale(values.float()).double()
    torch.testing.assert_close(scaled.mean(0), torch.zeros_like(scaled[0]), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaled[:, 1:].var(0, correction=0), torch.ones_like(scaled[0, 1:]), atol=1e-5, rtol=0)
    assert torch.isfinite(scaled).all()


def test_images_and_their_features_give_the_same(network):
    features = network.body.output(images()).features
    network.scale.fit(features.mean(0), features.std(0, correction=0))
    from_images, from_features = network.output(images()), network.output(features)
    torch.testing.assert_close(from_images.logits, from_features.logits)
    by_hand = (features - features.mean(0)) / features.std(0, correction=0).clamp_min(1e-3)
    torch.testing.assert_close(from_features.features, by_hand, atol=1e-4, rtol=1e-4)


def test_training_leaves_the_body_alone(network):
    before = copy.deepcopy(network.body.state_dict())
    network.train()
    nn.functional.cross_entropy(network(images()), torch.zeros(8, dtype=torch.int64)).backward()
    assert network.training and not any(module.training for module in network.body.modules())
    assert all(p.grad is None for p in network.body.parameters()) and network.head.weight.grad is not None
    assert all(torch.equal(value, before[name]) for name, value in network.body.state_dict().items())


@pytest.mark.parametrize("outer", [lambda network: network, lambda network: nn.ModuleDict({"network": network})])
def test_only_what_is_trained_is_saved(network, outer):
    network.scale.fit(torch.randn(network.feature_dim), torch.rand(network.feature_dim))
    state = outer(network).state_dict()
    names = {name.removeprefix("network.") for name in state}
    assert names == {"scale.mean", "scale.std", "head.weight", "head.bias"}
    other = outer(FrozenBody(network.body, 5, LinearHead))
    other.load_state_dict(state)
    assert all(torch.equal(value, state[name]) for name, value in other.state_dict().items())
    with pytest.raises(RuntimeError, match="head.weight"):
        other.load_state_dict({name: value for name, value in state.items() if "head.weight" not in name})
