"""Folded norms change no output, and only what can be folded is."""

import copy

import torch
from torch import nn

from equipoise.deploy.folding import folded
from equipoise.models import create_model
from equipoise.norms import BatchNorm2d, set_example_weight


def after_some_training(network):
    """With moving averages, scales and shifts that are not those of a new network."""
    rng = torch.Generator().manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for name in ("running_mean", "bias"):
                getattr(module, name).data.normal_(generator=rng)
            for name in ("running_var", "weight"):
                getattr(module, name).data.uniform_(0.5, 2, generator=rng)
    return network.eval()


def batch_norms(network):
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def test_outputs_stay_and_the_original_too():
    network = after_some_training(create_model("cnn_small", num_classes=3))
    before = copy.deepcopy(network.state_dict())
    quick, images = folded(network), torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(quick(images), network(images), rtol=1e-4, atol=1e-5)
    assert batch_norms(quick) == 0 and batch_norms(network) == 4
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_norms_of_other_kinds_stay():
    weighed = nn.Sequential(nn.Conv2d(3, 4, 3), BatchNorm2d(4)).eval()
    set_example_weight(weighed, 0.5)
    hooked = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    set_example_weight(hooked, 0.5)
    training, apart = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), nn.Sequential(nn.ReLU(), nn.BatchNorm2d(3))
    for network in (weighed, hooked, training, apart.eval()):
        assert batch_norms(folded(network)) == 1
