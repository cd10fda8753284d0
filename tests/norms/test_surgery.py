"""Exchanging norms in networks whose code we do not touch."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.norms import (
    BatchGroupNorm2d,
    BatchNorm2d,
    BatchRenorm2d,
    GhostBatchNorm2d,
    GroupNorm2d,
    replace_norm,
    set_example_weight,
)


class Basic(nn.Module):
    """A residual block as libraries write it, with activations in place."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
        self.conv2, self.bn2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
        self.relu, self.downsample = nn.ReLU(inplace=True), None
        if stride != 1 or inner != outer:
            self.downsample = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, width=8, classes=5):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(Basic(width, width, 1), Basic(width, width, 1))
        self.layer2 = nn.Sequential(Basic(width, 2 * width, 2), Basic(2 * width, 2 * width, 1))
        self.fc = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


def trained_resnet():
    network = ResNet()
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    for _ in range(8):
        optimizer.zero_grad()
        F.cross_entropy(network(torch.randn(16, 3, 12, 12) * 2 + 1), torch.randint(5, (16,))).backward()
        optimizer.step()
    return network.eval()


@pytest.mark.parametrize(
    "factory", [BatchNorm2d, lambda c: GhostBatchNorm2d(c, 4), BatchRenorm2d, "ghost(ghost_size=4)"]
)
def test_a_trained_network_predicts_as_before(factory):
    network, x = trained_resnet(), torch.randn(6, 3, 12, 12) * 2 + 1
    expected = network(x).detach()
    stock = [n for n, m in network.named_modules() if isinstance(m, nn.BatchNorm2d)]
    assert replace_norm(network, factory) == stock and len(stock) == 10
    torch.testing.assert_close(network(x), expected, atol=1e-5, rtol=1e-5)
    set_example_weight(network, None)
    torch.testing.assert_close(network(x), expected, atol=1e-5, rtol=1e-5)
    assert not any(type(m) is nn.BatchNorm2d for m in network.modules())


def test_weighing_gives_the_same_before_and_after():
    network, x = trained_resnet(), torch.randn(6, 3, 12, 12)
    set_example_weight(network, 0.3)
    expected = network(x).detach()
    set_example_weight(network, None)
    replace_norm(network, BatchNorm2d)
    set_example_weight(network, 0.3)
    torch.testing.assert_close(network(x), expected, atol=1e-4, rtol=1e-4)


def test_and_back_to_stock():
    network, x = trained_resnet(), torch.randn(6, 3, 12, 12)
    expected = network(x).detach()
    replace_norm(network, lambda c: GhostBatchNorm2d(c, 4))
    replace_norm(network, nn.BatchNorm2d)
    torch.testing.assert_close(network(x), expected, atol=1e-5, rtol=1e-5)


def test_an_optimizer_made_before_still_trains_it():
    network = ResNet()
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    old = [network.bn1.weight, network.bn1.bias]
    replace_norm(network, lambda c: BatchGroupNorm2d(c, 4))
    assert network.bn1.weight is old[0] and network.bn1.bias is old[1]
    before = network.bn1.bias.detach().clone()
    F.cross_entropy(network(torch.randn(5, 3, 8, 8)), torch.randint(5, (5,))).backward()
    optimizer.step()
    assert not torch.equal(network.bn1.bias, before)


@pytest.mark.parametrize(
    ("kind", "shape"), [(nn.BatchNorm1d, (4, 6)), (nn.BatchNorm1d, (4, 6, 3)), (nn.BatchNorm3d, (4, 6, 2, 2, 2))]
)
def test_one_and_three_dimensions(kind, shape):
    norm = kind(6, eps=1e-3)
    norm(torch.randn(shape) * 3 + 1)
    network, x = nn.Sequential(norm).eval(), torch.randn(shape)
    expected = network(x)
    replace_norm(network, lambda c: GhostBatchNorm2d(c, 2))
    assert network[0].eps == 1e-3 and not network[0].training
    torch.testing.assert_close(network(x), expected, atol=1e-5, rtol=1e-5)
    assert network.train()(x).shape == shape


def test_norms_without_affine_or_statistics():
    network = nn.Sequential(nn.BatchNorm2d(4, affine=False), nn.BatchNorm2d(4, track_running_stats=False))
    replace_norm(network, lambda c: GhostBatchNorm2d(c, 2))
    assert network[0].weight is None and network[0].bias is None and network[1].weight is not None
    y = network(torch.randn(6, 4, 3, 3))
    assert torch.isfinite(y).all() and torch.isfinite(network.eval()(y)).all()


def test_a_shared_norm_stays_shared():
    shared = nn.BatchNorm2d(3)
    network = nn.ModuleDict({"a": shared, "b": nn.Sequential(shared), "c": nn.BatchNorm2d(3)})
    assert replace_norm(network, lambda c: GroupNorm2d(c, 3)) == ["a", "b.0", "c"]
    assert network["a"] is network["b"][0] and network["a"] is not network["c"]


class NormAct(nn.BatchNorm2d):
    def __init__(self, channels):
        super().__init__(channels)
        self.drop, self.act = nn.Identity(), nn.ReLU()

    def forward(self, x):
        return self.act(self.drop(super().forward(x)))


class Squared(nn.BatchNorm2d):
    def forward(self, x):
        return super().forward(x) ** 2


def test_what_a_norm_of_another_library_does_besides_is_kept_or_refused():
    network, x = nn.Sequential(NormAct(3)).eval(), torch.randn(4, 3, 5, 5)
    expected = network(x)
    assert replace_norm(network, lambda c: GhostBatchNorm2d(c, 2)) == ["0"]
    torch.testing.assert_close(network(x), expected)
    with pytest.raises(ValueError, match="Squared computes more than a batch norm"):
        replace_norm(nn.Sequential(Squared(3)), BatchNorm2d)


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="Sequential has no batch norm to replace"):
        replace_norm(nn.Sequential(nn.Linear(2, 2)), BatchNorm2d)
    with pytest.raises(ValueError, match="is itself a norm"):
        replace_norm(nn.BatchNorm2d(3), BatchNorm2d)
    with pytest.raises(ValueError, match="run the network once"):
        replace_norm(nn.Sequential(nn.LazyBatchNorm2d()), BatchNorm2d)


def test_type_is_kept():
    network = nn.Sequential(nn.BatchNorm2d(3)).double()
    replace_norm(network, lambda c: GhostBatchNorm2d(c, 2))
    assert (
        network[0].running_square.dtype == torch.float64
        and network(torch.randn(4, 3, 2, 2).double()).dtype == torch.float64
    )
