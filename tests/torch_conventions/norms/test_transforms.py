"""Norms that are converted, fused, scripted, averaged, mapped and differentiated forwards, as PyTorch's tests
do it; and what Composer's tests ask of its ghost batch norm.
"""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.fx.experimental.optimization import fuse
from torch.optim.swa_utils import update_bn

from equipoise.norms import (
    BatchNorm2d,
    GhostBatchNorm2d,
    replace_norm,
    set_example_weight,
)

from .conftest import SHAPES, C, grads, trained


def test_sync_batch_norm_takes_batch_norm_alone(kind, norm):
    """Anything else would silently train, or predict, as something else."""
    trained(norm, 8, C, 3, 4)
    if kind == "batch":
        converted = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(norm))
        assert torch.equal(converted[0].running_var, norm.running_var)
        set_example_weight(norm, 0.3)
    with pytest.raises(TypeError, match="convert_sync_batchnorm would lose what"):
        nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(norm))


def test_sync_batch_norm_of_a_stock_norm_that_weighs():
    network = nn.Sequential(nn.BatchNorm2d(C))
    set_example_weight(network, 0.3)
    with pytest.raises(TypeError, match=r"set_example_weight\(network, None\)"):
        nn.SyncBatchNorm.convert_sync_batchnorm(network)
    set_example_weight(network, None)
    assert isinstance(nn.SyncBatchNorm.convert_sync_batchnorm(network)[0], nn.SyncBatchNorm)


@pytest.mark.parametrize("alpha", [None, 0.0, 0.3])
def test_fusing_with_a_convolution_is_right_or_refused(kind, norm, alpha):
    conv, x = nn.Conv2d(2, C, 3), torch.randn(4, 2, 5, 5)
    trained(norm, 8, C, 3, 4)
    set_example_weight(norm, alpha)
    network = nn.Sequential(conv, norm).eval()
    at_no_weight = kind in ("batch", "batch_renorm") and alpha is not None
    if alpha or at_no_weight or kind in ("batch_group", "group"):
        with pytest.raises(TypeError, match="fuse_conv_bn_eval would lose what"):
            torch.nn.utils.fuse_conv_bn_eval(conv, norm)
    else:
        fused = torch.nn.utils.fuse_conv_bn_eval(conv, norm)
        torch.testing.assert_close(fused(x), network(x), atol=1e-5, rtol=1e-5)
    by_graph = fuse(network)
    torch.testing.assert_close(by_graph(x), network(x), atol=1e-5, rtol=1e-5)


def test_scripting(kind, norm):
    trained(norm, 8, C, 3, 4).eval()
    x = torch.randn(4, C, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if kind == "batch":
            torch.testing.assert_close(torch.jit.script(nn.Sequential(copy.deepcopy(norm)))(x), norm(x))
            set_example_weight(norm, 0.3)
        with pytest.raises(NotImplementedError, match="torch.jit.script cannot compile"):
            torch.jit.script(nn.Sequential(norm))


def test_update_bn(make):
    """As after stochastic weight averaging: the statistics of one pass over the data, whatever they were."""
    norm, batches = make(), [torch.randn(8, C, 3, 4) * 2 + i for i in range(3)]
    trained(norm, 8, C, 3, 4).eval()
    momentum, network = norm.momentum, nn.Sequential(norm).eval()
    update_bn(batches, network)
    assert norm.momentum == momentum and not norm.training
    means = torch.stack([x.mean((0, 2, 3)) for x in batches]).mean(0)
    squares = torch.stack([x.square().mean((0, 2, 3)) for x in batches]).mean(0)
    torch.testing.assert_close(norm.running_mean, means, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.moving()[1], squares - means.square(), atol=1e-4, rtol=1e-4)


def test_lightnings_weight_averaging(make):
    callbacks = pytest.importorskip("lightning.pytorch.callbacks")
    network, batches = nn.Sequential(trained(make(), 8, C, 3, 4)), [torch.randn(8, C, 3, 4) + i for i in range(3)]
    norm, momentum = network[0], network[0].momentum
    averaging = callbacks.StochasticWeightAveraging(swa_lrs=0.1)
    network.device, network.dtype = torch.device("cpu"), torch.float32  # what a LightningModule knows of itself
    averaging.reset_batch_norm_and_save_state(network)
    for x in batches:
        network(x)
    averaging.reset_momenta()
    means = torch.stack([x.mean((0, 2, 3)) for x in batches]).mean(0)
    squares = torch.stack([x.square().mean((0, 2, 3)) for x in batches]).mean(0)
    assert norm.momentum == momentum
    torch.testing.assert_close(norm.running_mean, means, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.moving()[1], squares - means.square(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_gradients_of_each_sample(norm, alpha):
    set_example_weight(trained(norm, 8, C, 3, 4).eval(), alpha)
    x, parameters = torch.randn(4, C, 3, 4), dict(norm.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(norm, parameters, (x[None],)).square().sum()

    found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    for i, one in enumerate(x):
        wanted = grads(norm(one[None]), norm.weight, norm.bias)
        torch.testing.assert_close((found["weight"][i], found["bias"][i]), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_an_ensemble(kind, make, training):
    """Untracked norms train in it; tracked ones write into their buffers, which each member has its own of."""
    members = [trained(make(), 8, C, 3, 4).train(training) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(members)
    x = torch.randn(8, C, 3, 4)

    def call(parameters, buffers, x):
        return torch.func.functional_call(members[0], (parameters, buffers), (x,))

    found = torch.func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    wanted = torch.stack([member(x) for member in members])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    for name in buffers:
        after = torch.stack([member.get_buffer(name) for member in members])
        torch.testing.assert_close(buffers[name], after, atol=1e-5, rtol=1e-5)


def test_one_buffer_for_many_mapped_batches_is_refused_as_by_pytorch(norm):
    with pytest.raises(RuntimeError, match="broadcast shape|vmapped"):
        torch.func.vmap(norm)(torch.randn(3, 8, C, 3, 4))


@pytest.mark.parametrize("training", [True, False])
def test_forward_mode(make, training):
    norm = make(dtype=torch.float64, track_running_stats=not training).train(training)
    x, tangent = (torch.randn(4, C, 2, 2, dtype=torch.float64) for _ in range(2))
    _, found = torch.func.jvp(norm, (x,), (tangent,))
    step = 1e-6
    wanted = (norm(x + step * tangent) - norm(x - step * tangent)) / (2 * step)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize("n", [8, 12, 10])
def test_each_ghost_has_mean_0_and_variance_1(dims, n):
    y = GhostBatchNorm2d(C, 4)(torch.randn(n, *SHAPES[dims][1:]) * 3 + 2).detach()
    for ghost in y.split(4):
        values = ghost.transpose(0, 1).flatten(1)
        torch.testing.assert_close(values.mean(1), torch.zeros(C), atol=1e-5, rtol=0)
        torch.testing.assert_close(values.var(1, correction=0), torch.ones(C), atol=1e-3, rtol=0)


def test_fewer_examples_than_a_ghost_are_one_ghost():
    """Composer refuses them; the last batch of an epoch would then end the training."""
    x = torch.randn(3, C, 3, 4)
    torch.testing.assert_close(GhostBatchNorm2d(C, 16)(x), BatchNorm2d(C)(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("stock", "dims"), [(nn.BatchNorm1d, "2d"), (nn.BatchNorm2d, "4d"), (nn.BatchNorm3d, "5d")])
def test_ghosts_take_the_place_of_batch_norms(stock, dims):
    network = nn.Sequential(stock(C), nn.ReLU())
    assert replace_norm(network, "ghost(ghost_size=4)") == ["0"]
    network(torch.randn(SHAPES[dims])).sum().backward()
    assert network[0].weight.grad is not None
