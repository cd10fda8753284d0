"""Example weighing: the formula, on our norms and on anyone's, and its undoing."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models import create_model
from equipoise.norms import (
    BatchGroupNorm2d,
    BatchNorm2d,
    BatchRenorm2d,
    GhostBatchNorm2d,
    GroupNorm2d,
    example_weight,
    example_weighted_norm,
    set_example_weight,
)

LAYOUTS = [torch.contiguous_format, torch.channels_last]
OURS = [
    lambda c: BatchNorm2d(c, momentum=0.5),
    lambda c: GhostBatchNorm2d(c, 3, decay=0.5),
    lambda c: GroupNorm2d(c, 2, decay=0.5),
    lambda c: BatchGroupNorm2d(c, 2, decay=0.5),
    lambda c: BatchRenorm2d(c, decay=0.5),
]
STOCK = [
    (nn.BatchNorm1d, (6, 4)),
    (nn.BatchNorm1d, (6, 4, 5)),
    (nn.BatchNorm2d, (6, 4, 3, 3)),
    (nn.BatchNorm3d, (6, 4, 2, 2, 2)),
]


class NormAct(nn.BatchNorm2d):
    """As in timm: a batch norm that goes on to an activation."""

    def __init__(self, channels):
        super().__init__(channels)
        self.drop, self.act = nn.Identity(), nn.ReLU()

    def forward(self, x):
        mean, var = (None, None) if self.training else (self.running_mean, self.running_var)
        return self.act(F.batch_norm(x, mean, var, self.weight, self.bias, self.training, 0.1, self.eps))


def trained(norm, *shape, batches=4):
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.normal_()
    for i in range(batches):
        norm(torch.randn(shape) * 2 + i)
    return norm.eval()


def arrays(*tensors):
    return [t.detach().double().numpy() for t in tensors]


def test_by_hand():
    norm = GhostBatchNorm2d(1, 2).eval()
    norm.running_mean.fill_(2.0)
    norm.running_square.fill_(5.0)
    set_example_weight(norm, 0.25)
    # E[x] = 4, E[x²] = (4 + 36) / 2 = 20: μ = 1 + 1.5 = 2.5, σ² = 5 + 3.75 - 6.25 = 2.5
    y = norm(torch.tensor([2.0, 6.0]).view(1, 1, 1, 2)).flatten()
    torch.testing.assert_close(y, torch.tensor([-0.5, 3.5]) / 2.50001**0.5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", OURS)
@pytest.mark.parametrize("alpha", [0.05, 0.7, 1.0])
def test_our_norms_follow_the_formula(reference, make, alpha, layout):
    norm = trained(make(4), 6, 4, 3, 3)
    x = (torch.randn(5, 4, 3, 3) * 2 + 3).contiguous(memory_format=layout)
    moving = arrays(norm.running_mean, norm.running_square, norm.weight, norm.bias)
    expected = reference.weighted_norm(*arrays(x.flatten(2)), *moving, alpha, norm.block().groups)
    assert set_example_weight(norm, alpha) == [""]
    with torch.no_grad():
        np.testing.assert_allclose(norm(x).flatten(2), expected, atol=2e-4)
    np.testing.assert_allclose(norm(x).detach().flatten(2), expected, atol=2e-4)  # the way that keeps a graph


@pytest.mark.parametrize(("kind", "shape"), STOCK)
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_stock_norms_follow_the_formula(reference, kind, shape, alpha):
    norm = trained(kind(4), *shape)
    x = torch.randn(shape) * 2 + 3
    square = norm.running_var + norm.running_mean**2
    moving = arrays(norm.running_mean, square, norm.weight, norm.bias)
    expected = reference.weighted_norm(*arrays(x.reshape(6, 4, -1)), *moving, alpha, 4)
    set_example_weight(norm, alpha)
    with torch.no_grad():
        np.testing.assert_allclose(norm(x).reshape(6, 4, -1), expected, atol=2e-3 if len(shape) == 2 else 2e-4)


@pytest.mark.parametrize("make", [*OURS, *(kind for kind, shape in STOCK if len(shape) == 4), NormAct])
def test_the_output_does_not_depend_on_the_batch(make):
    norm, x = trained(make(4), 6, 4, 3, 3), torch.randn(8, 4, 3, 3) * 3
    set_example_weight(norm, 0.3)
    with torch.no_grad():
        torch.testing.assert_close(norm(x)[3:4], norm(x[3:4]), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("make", [*OURS, nn.BatchNorm2d, NormAct])
def test_none_is_usual_inference(make):
    norm, x = trained(make(4), 6, 4, 3, 3), torch.randn(8, 4, 3, 3)
    set_example_weight(norm, 0.3)
    set_example_weight(norm, None)
    if isinstance(norm, GroupNorm2d):
        assert norm.example_weight == 1.0  # for group norm, usual inference is the example alone
        expected = F.group_norm(x, 2, norm.weight, norm.bias)
    elif isinstance(norm, BatchGroupNorm2d):
        mean, var = (t.view(2, 2) for t in norm.moving())
        var = (var + (mean - mean.mean(1, keepdim=True)) ** 2).mean(1).repeat_interleave(2)
        expected = F.batch_norm(x, mean.mean(1).repeat_interleave(2), var, norm.weight, norm.bias)
    elif isinstance(norm, BatchRenorm2d):
        expected = F.batch_norm(x, norm.running_mean, norm.running_std**2, norm.weight, norm.bias, eps=1e-30)
    else:
        var = norm.moving()[1] if isinstance(norm, GhostBatchNorm2d) else norm.running_var
        expected = F.batch_norm(x, norm.running_mean, var, norm.weight, norm.bias)
        expected = expected.relu() if isinstance(norm, NormAct) else expected
    torch.testing.assert_close(norm(x), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("make", [*OURS, nn.BatchNorm2d, NormAct])
def test_zero_is_the_limit_of_small_weights(make):
    """Also where the means of training batches differ, and with them E[x²] from variance plus squared mean."""
    norm, x = make(4), torch.randn(8, 4, 3, 3)
    for step in range(200):
        norm(torch.randn(8, 4, 3, 3) + 3 * (-1) ** step)
    norm.eval()
    outputs = []
    for alpha in (0.0, 1e-6):
        set_example_weight(norm, alpha)
        outputs.append(norm(x).detach())
    torch.testing.assert_close(*outputs, atol=1e-4, rtol=1e-4)


def test_zero_uses_the_average_of_the_square_and_none_the_moving_variance():
    norm = BatchNorm2d(1, eps=1e-12).eval()
    norm.running_square.fill_(5.0)  # beside a running mean of 0 and a running variance of 1
    x = torch.tensor([1.0, 2.0]).view(2, 1, 1, 1)
    assert torch.equal(norm(x), x)
    set_example_weight(norm, 0.0)
    torch.testing.assert_close(norm(x), x / 5**0.5)
    set_example_weight(norm, None)
    assert torch.equal(norm(x), x)


def test_norms_of_other_libraries(reference):
    norm, x = trained(NormAct(4), 6, 4, 3, 3), torch.randn(5, 4, 3, 3)
    moving = arrays(norm.running_mean, norm.running_var + norm.running_mean**2, norm.weight, norm.bias)
    expected = reference.weighted_norm(*arrays(x.flatten(2)), *moving, 0.4, 4).clip(0)
    assert set_example_weight(norm, 0.2) == set_example_weight(norm, 0.4) == [""]
    with torch.no_grad():
        np.testing.assert_allclose(norm(x).flatten(2), expected, atol=1e-4)
    norm.train()
    torch.testing.assert_close(norm(x), NormAct(4)(x) * 0 + norm(x))  # in training the hook does nothing
    set_example_weight(norm, None)
    assert not norm._forward_pre_hooks


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("alpha", [0.1, 0.9])
def test_far_from_zero(layout, alpha):
    """Mean 1e4, deviation 1: the formula with E[x²] in float32 would take the root of noise."""
    norm = GhostBatchNorm2d(2, 8, decay=0.5)
    x = (1e4 + torch.randn(32, 2, 8, 8)).contiguous(memory_format=layout)
    for _ in range(60):
        norm(x)
    set_example_weight(norm.eval(), alpha)
    with torch.no_grad():
        y = norm(x)
    exact = copy.deepcopy(norm).double()
    exact.running_mean.copy_(x.double().mean((0, 2, 3)))
    exact.running_square.copy_((x.double() ** 2).mean((0, 2, 3)))
    exact.square_rest.zero_()
    torch.testing.assert_close(y.double(), exact(x.double()), atol=2e-2, rtol=1e-2)


def test_gradients():
    args = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3, 4, 2, 2), (4,), (4,))]
    mean, var = torch.randn(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64) + 0.5
    for groups in (4, 2):
        assert torch.autograd.gradcheck(
            lambda x, w, b, groups=groups: example_weighted_norm(x, mean, var, w, b, 0.3, groups=groups), args
        )


def test_half_precision_and_nothing():
    norm = trained(nn.BatchNorm2d(4), 6, 4, 3, 3)
    set_example_weight(norm, 0.3)
    x = torch.randn(5, 4, 3, 3)
    with torch.no_grad():
        assert norm(x.bfloat16()).dtype == torch.bfloat16
        torch.testing.assert_close(norm(x.bfloat16()).float(), norm(x), atol=5e-2, rtol=2e-2)
        assert norm(x[:0]).shape == (0, 4, 3, 3)


def test_a_whole_network_in_place_and_back():
    network = create_model("cnn_small(width=4)", num_classes=3).eval()
    x, names = torch.randn(4, 3, 16, 16), [n for n, m in network.named_modules() if isinstance(m, nn.BatchNorm2d)]
    before, keys = network(x), list(network.state_dict())
    assert set_example_weight(network, 0.2) == names
    assert not torch.allclose(network(x), before)
    assert list(network.state_dict()) == keys and repr(network).count("ExampleWeightedBatchNorm2d") == len(names)
    twin = pickle.loads(pickle.dumps(copy.deepcopy(network)))
    assert torch.equal(twin(x), network(x))
    set_example_weight(network, 0)
    assert torch.equal(network(x), before) and all(type(network.get_submodule(n)) is nn.BatchNorm2d for n in names)


def test_the_block_leaves_the_network_as_it_was():
    network = nn.Sequential(BatchNorm2d(3), GroupNorm2d(3, 3), nn.BatchNorm2d(3), NormAct(3)).eval()
    set_example_weight(network[2], 0.5)
    state = [network[0].example_weight, network[1].example_weight, network[2].example_weight]
    assert state == [None, 1.0, 0.5]
    with pytest.raises(RuntimeError, match="inside"), example_weight(network, 0.25) as names:
        assert names == ["0", "1", "2", "3"] and network[1].example_weight == 0.25
        assert len(network[3]._forward_pre_hooks) == 1
        raise RuntimeError("inside")
    assert [m.example_weight for m in network[:3]] == state and not network[3]._forward_pre_hooks


def test_training_is_not_touched():
    x = torch.randn(6, 3, 4, 4)
    for make in (nn.BatchNorm2d, BatchNorm2d, lambda c: GhostBatchNorm2d(c, 2)):
        plain, weighted = make(3), make(3)
        set_example_weight(weighted, 0.5)
        assert torch.equal(plain(x), weighted(x)) and torch.equal(plain.running_mean, weighted.running_mean)


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="Sequential has no norm with moving statistics"):
        set_example_weight(nn.Sequential(nn.Conv2d(3, 3, 1), nn.GroupNorm(3, 3)), 0.1)
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
        set_example_weight(nn.BatchNorm2d(3), 1.5)
    with pytest.raises(ValueError, match="expected 4D"):
        set_example_weight(norm := nn.BatchNorm2d(3).eval(), 0.1)
        norm(torch.zeros(2, 3))
