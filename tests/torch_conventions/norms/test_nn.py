"""What PyTorch asks of its norms in its `test_nn.py`: statistics, states, empty batches."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.norms import (
    GroupNorm2d,
    replace_norm,
    set_example_weight,
)

from .conftest import SHAPES, C, expected, trained


@pytest.mark.parametrize("shape", [(1, C), (1, C, 1), (1, C, 1, 1)])
def test_one_value_a_statistic_is_refused_in_training(kind, make, shape):
    groups = {"batch_group": 3, "group": 3}.get(kind, C)
    norm = make()
    if groups < C:
        norm.groups = C
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        norm(torch.randn(shape))
    assert norm.eval()(torch.randn(shape)).shape == shape


@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize("training", [True, False])
def test_empty_batches(norm, training, dims):
    trained(norm, *SHAPES[dims]).train(training)
    before = {name: value.clone() for name, value in norm.named_buffers() if value.is_floating_point()}
    for alpha in (None, 0.0, 0.5):
        if alpha is not None:
            set_example_weight(norm, alpha)
        x = torch.randn(0, *SHAPES[dims][1:], requires_grad=True)
        y = norm(x)
        norm.zero_grad()
        y.sum().backward()
        assert y.shape == x.shape == x.grad.shape
        assert norm.weight.grad.tolist() == norm.bias.grad.tolist() == [0.0] * C
    assert all(torch.equal(norm.get_buffer(name), value) for name, value in before.items())


def test_momentum_none_is_the_average_of_all_batches(make):
    norm, batches = make(momentum=None), [torch.randn(8, C, 3, 4) + i for i in range(4)]
    for x in batches:
        norm(x)
    means = torch.stack([x.mean((0, 2, 3)) for x in batches])
    squares = torch.stack([x.square().mean((0, 2, 3)) for x in batches])
    torch.testing.assert_close(norm.running_mean, means.mean(0), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.running_square, squares.mean(0), atol=1e-4, rtol=1e-5)
    assert int(norm.num_batches_tracked) == 4


def test_resets(norm, make):
    fresh = make().state_dict()
    trained(norm, 8, C, 3, 4).reset_running_stats()
    for name, value in norm.state_dict().items():
        assert name in ("weight", "bias") or torch.equal(value, fresh[name])
    assert not torch.equal(norm.weight, torch.ones(C))
    trained(norm, 8, C, 3, 4).reset_parameters()
    assert all(torch.equal(value, fresh[name]) for name, value in norm.state_dict().items())


def test_running_var(norm, kind):
    trained(norm, 8, C, 3, 4).eval()
    assert norm.running_var.shape == (C,) and norm.running_var.dtype == torch.float32
    x = torch.randn(5, C, 3, 4)
    if kind in ("batch", "ghost", "batch_renorm"):
        stock = F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)
        torch.testing.assert_close(norm(x), stock, atol=1e-5, rtol=1e-5)
    norm.running_mean.zero_()
    norm.running_var = torch.full((C,), 4.0)
    torch.testing.assert_close(norm.running_var, torch.full((C,), 4.0))


def test_statistics_that_are_not_to_be_tracked_stay(norm):
    trained(norm, 8, C, 3, 4)
    norm.track_running_stats = False
    before = [b.clone() for b in norm.buffers()]
    norm(torch.randn(8, C, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(norm.buffers(), before, strict=True))


def test_without_statistics_inference_is_training(kind, make):
    norm, x = make(track_running_stats=False).eval(), torch.randn(8, C, 3, 4)
    torch.testing.assert_close(norm(x).double(), expected(kind, x), atol=1e-5, rtol=1e-4)


def test_frozen_in_inference_mode(norm):
    trained(norm, 8, C, 3, 4).eval()
    before = copy.deepcopy(norm.state_dict())
    norm(torch.randn(8, C, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(norm.state_dict().values(), before.values(), strict=True))


@pytest.mark.parametrize("stock", [nn.BatchNorm1d(C), nn.BatchNorm2d(C), nn.BatchNorm3d(C), nn.SyncBatchNorm(C)])
def test_batch_norm_states_load_strictly(norm, stock):
    if not isinstance(stock, nn.SyncBatchNorm):
        trained(stock, *SHAPES[{nn.BatchNorm1d: "3d", nn.BatchNorm2d: "4d", nn.BatchNorm3d: "5d"}[type(stock)]])
    norm.load_state_dict(stock.state_dict())
    torch.testing.assert_close(norm.moving()[1], stock.running_var, atol=1e-5, rtol=1e-4)
    assert torch.equal(norm.num_batches_tracked, stock.num_batches_tracked)


def test_states_saved_before_batches_were_counted_load_strictly(norm, make):
    state = dict(trained(norm, 8, C, 3, 4).state_dict())
    state.pop("num_batches_tracked", None)
    twin = make()
    twin.load_state_dict(state)
    assert torch.equal(twin.running_square, norm.running_square)


def test_group_norm_states_load_strictly():
    stock, norm, x = nn.GroupNorm(3, C), GroupNorm2d(C, 3), torch.randn(4, C, 3, 4)
    nn.init.normal_(stock.weight)
    norm.load_state_dict(stock.state_dict())
    torch.testing.assert_close(norm.eval()(x), stock(x), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.train()(x), stock(x), atol=1e-5, rtol=1e-5)
    network = nn.Sequential(GroupNorm2d(C, 3))
    network.load_state_dict(nn.Sequential(stock).state_dict())


def test_a_state_that_has_lost_a_part_is_refused():
    state = dict(trained(GroupNorm2d(C, 3), 8, C, 3, 4).state_dict())
    del state["running_mean"]
    with pytest.raises(RuntimeError, match="running_mean"):
        GroupNorm2d(C, 3).load_state_dict(state)


@pytest.mark.parametrize("momentum", [0.1, 0.25, None])
def test_replace_norm_keeps_the_momentum(make, momentum):
    network = nn.Sequential(nn.BatchNorm2d(C, momentum=momentum))
    network[0](torch.randn(8, C, 3, 4))
    replace_norm(network, lambda c: make())
    assert network[0].momentum == momentum and int(network[0].num_batches_tracked) == 1
    replace_norm(network, nn.BatchNorm2d)
    assert network[0].momentum == momentum
    chosen = nn.Sequential(nn.BatchNorm2d(C, momentum=momentum))
    replace_norm(chosen, lambda c: make(momentum=0.5))
    assert chosen[0].momentum == 0.5
    replace_norm(chosen, "ghost")
    assert chosen[0].momentum == 0.5
    replace_norm(chosen, "ghost(decay=0.99)")  # the default, but said
    assert chosen[0].decay == 0.99
