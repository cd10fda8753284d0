"""A norm, a shortcut and a ReLU as one on the CPU: the kernels in C against the formula, and against going step by
step, with which they agree to the bit."""

import pytest
import torch
import torch.nn.functional as F

from equipoise.models import create_model
from equipoise.norms import BatchNorm2d
from equipoise.norms._then_relu import ThenRelu
from equipoise.norms.kernels.cpu import native_block_norm
from equipoise.norms.kernels.groups import fit_groups, grouped_norm_plain, split_examples

from .then_relu import (
    CASES,
    NEEDS_C,
    NORMS,
    assert_same_bits,
    every_norm,
    gradients,
    make_norm,
    maps,
    of_single_channels,
    step_by_step,
    with_and_without_shortcut,
)

EPS = 1e-5

pytestmark = NEEDS_C


def of_channels(channels):
    return tuple(torch.randn(channels).requires_grad_() for _ in range(2))


@pytest.mark.parametrize("affine", [(True, True), (True, False), (False, True), (False, False)], ids=str)
@pytest.mark.parametrize("grouped", [False, True], ids=["channels", "groups"])
@with_and_without_shortcut
@pytest.mark.parametrize("case", CASES)
def test_values_gradients_and_statistics_are_those_of_the_formula(case, layout, with_shortcut, grouped, affine):
    shape, ghost = CASES[case]
    x, shortcut, grad = maps(shape, layout, with_shortcut)
    weight, bias = (t if wanted else None for t, wanted in zip(of_channels(shape[1]), affine, strict=True))
    groups = fit_groups(shape[1], 4) if grouped else shape[1]
    geometry = *split_examples(shape[0], ghost, shape[1] * shape[2] * shape[3] // groups), groups, EPS
    y, batch = native_block_norm(x, weight, bias, *geometry, relu=True, shortcut=shortcut)
    leaves = x, shortcut, weight, bias
    exact = [None if t is None else t.detach().double().requires_grad_() for t in leaves]
    inner, mean, var = grouped_norm_plain(exact[0], *exact[2:], *geometry)
    inner = inner if shortcut is None else inner + exact[1]
    expected = inner.relu()
    assert y.is_contiguous(memory_format=layout) and (y == 0).any() and (y > 0).any()
    torch.testing.assert_close(y.double(), expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(batch.merged()[0].double(), mean, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(batch.merged()[1].double(), var, atol=1e-5, rtol=1e-5)
    grad = grad.masked_fill(inner.abs() < 1e-4, 0)  # there the two may differ in whether the ReLU is open
    for ours, theirs in zip(gradients(y, grad, *leaves), gradients(expected, grad.double(), *exact), strict=True):
        spread = 2e-4 * max(1.0, theirs.abs().max().item())
        torch.testing.assert_close(ours.double(), theirs, atol=spread, rtol=2e-4)


@pytest.mark.parametrize("affine", [True, False])
@with_and_without_shortcut
@every_norm
@pytest.mark.parametrize("case", CASES)
def test_it_is_the_same_to_the_bit_as_step_by_step(case, name, layout, with_shortcut, affine):
    """The result, all gradients, the moving averages and the count of batches."""
    shape, ghost = CASES[case]
    x, shortcut, grad = maps(shape, layout, with_shortcut)
    found = []
    for way in (ThenRelu.then_relu, step_by_step):
        norm = make_norm(name, shape[1], ghost, affine=affine)
        for n in (shape[0] // 2, shape[0]):  # two batches of different sizes
            if n:
                parts = x[:n], None if shortcut is None else shortcut[:n]
                y = way(norm, *parts)
                slopes = gradients(y, grad[:n], x, shortcut, norm.weight, norm.bias)
        assert norm.num_batches_tracked == 1 + (shape[0] > 1) and norm.running_mean.any()
        found.append([y, *slopes, *norm.buffers()])
    assert_same_bits(*found)


@of_single_channels
def test_a_number_computed_by_hand(name, layout):
    """x = 1, 3 has mean 2 and variance 1; with ε = 3 it becomes ∓1/2, with γ = 2 and β = 1/2 -1/2 and 3/2."""
    for shortcut, y, dx, d_shortcut, d_weight, d_bias in (
        (None, (0, 1.5), (-0.375, 0.375), None, 0.5, 1),
        ((1.0, -3.0), (0.5, 0), (0.375, -0.375), (1, 0), -0.5, 1),
    ):
        norm = NORMS[name](1, eps=3.0)
        norm.weight.data.fill_(2), norm.bias.data.fill_(0.5)
        x = torch.tensor([1.0, 3.0]).view(2, 1, 1, 1).contiguous(memory_format=layout).requires_grad_()
        if shortcut is not None:
            shortcut = torch.tensor(shortcut).view(2, 1, 1, 1).contiguous(memory_format=layout).requires_grad_()
        found = norm.then_relu(x, shortcut)
        found.sum().backward()
        assert found.flatten().tolist() == list(y) and x.grad.flatten().tolist() == list(dx)
        assert norm.weight.grad.item() == d_weight and norm.bias.grad.item() == d_bias
        assert shortcut is None or shortcut.grad.flatten().tolist() == list(d_shortcut)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("where", ["x", "shortcut", "gradient"])
@every_norm
def test_what_is_not_a_number_goes_where_it_goes_step_by_step(name, where, value, layout):
    x, shortcut, grad = maps((6, 5, 4, 4), layout, with_shortcut=True)
    with torch.no_grad():
        {"x": x, "shortcut": shortcut, "gradient": grad}[where][1, 2] = value
    for added in (shortcut, None):
        found = []
        for way in (ThenRelu.then_relu, step_by_step):
            norm = make_norm(name, 5, ghost=2)
            y = way(norm, x, added)
            found.append([y, *gradients(y, grad, x, added, norm.weight, norm.bias), *norm.buffers()])
        assert_same_bits(*found)
        if added is not None or where != "shortcut":
            assert not all(t.isfinite().all() for t in found[0]) or (where, value) == ("shortcut", -float("inf"))
    assert where == "gradient" or norm.then_relu(x, shortcut)[1, 2].isnan().any() == (where == "x" or value != value)


@with_and_without_shortcut
def test_a_closed_relu_lets_no_gradient_through_whatever_it_is(with_shortcut, layout):
    x, shortcut, grad = maps((6, 5, 4, 4), layout, with_shortcut)
    y = make_norm("batch", 5).then_relu(x, shortcut)
    (dx,) = torch.autograd.grad(y, x, grad.masked_fill(y == 0, torch.nan))
    assert dx.isfinite().all()


@with_and_without_shortcut
def test_it_can_be_differentiated_twice(with_shortcut, layout):
    x, shortcut, grad = maps((5, 4, 3, 3), layout, with_shortcut)
    leaves = x, shortcut, *of_channels(4)
    exact = [None if t is None else t.detach().double().requires_grad_() for t in leaves]
    y = native_block_norm(x, *leaves[2:], 2, 3, 4, EPS, relu=True, shortcut=shortcut)[0]
    inner = grouped_norm_plain(exact[0], *exact[2:], 2, 3, 4, EPS)[0]
    expected = (inner if shortcut is None else inner + exact[1]).relu()
    found = []
    for out, tensors in ((y, leaves), (expected, exact)):
        tensors = [t for t in tensors if t is not None]
        firsts = torch.autograd.grad((out * grad + out.pow(3)).sum(), tensors, create_graph=True)
        found.append([*firsts, *torch.autograd.grad(sum(t.square().sum() for t in firsts), tensors)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=1e-4 * theirs.abs().max().item(), rtol=1e-3)


def test_a_shortcut_alone_can_be_differentiated_twice():
    x, shortcut, _ = maps((5, 4, 3, 3), torch.contiguous_format, with_shortcut=True)
    y = native_block_norm(x.detach(), None, None, 5, 1, 4, EPS, relu=True, shortcut=shortcut)[0]
    (first,) = torch.autograd.grad(y.square().sum(), shortcut, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), shortcut)
    assert torch.equal(first, 2 * y) and torch.equal(second, 2.0 * (y > 0))


@with_and_without_shortcut
def test_several_gradients_at_once(with_shortcut, layout):
    leaves = *maps((4, 3, 2, 2), layout, with_shortcut)[:2], *of_channels(3)
    y = native_block_norm(leaves[0], *leaves[2:], 4, 1, 3, EPS, relu=True, shortcut=leaves[1])[0]
    wanted, grads = [t for t in leaves if t is not None], torch.randn(5, *y.shape)
    batched = torch.autograd.grad(y, wanted, grads, is_grads_batched=True, retain_graph=True)
    one_by_one = [torch.autograd.grad(y, wanted, grad, retain_graph=True) for grad in grads]
    for ours, theirs in zip(batched, zip(*one_by_one, strict=True), strict=True):
        torch.testing.assert_close(ours, torch.stack(theirs), atol=1e-4, rtol=1e-4)


@with_and_without_shortcut
def test_a_gradient_that_is_spread_out_in_memory(with_shortcut, layout):
    x, shortcut, _ = maps((4, 3, 5, 5), layout, with_shortcut)
    found = []
    for way in (ThenRelu.then_relu, step_by_step):
        norm = make_norm("ghost", 3, ghost=2)
        y = way(norm, x, shortcut)
        expanded, strided = torch.randn(3, 1, 1, generator=torch.Generator().manual_seed(1)), y.detach().transpose(2, 3)
        for grad in (expanded.expand_as(y), strided):
            found.append(torch.autograd.grad(y, [x, norm.weight], grad, retain_graph=True))
    assert_same_bits(found[0], found[2])
    assert_same_bits(found[1], found[3])


def test_a_result_changed_in_place_is_found_out_in_backward():
    x, shortcut, _ = maps((4, 3, 5, 5), torch.contiguous_format, with_shortcut=True)
    y = BatchNorm2d(3).then_relu(x, shortcut)
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_without_a_shortcut_the_result_is_not_kept():
    x, shortcut, _ = maps((4, 3, 5, 5), torch.contiguous_format, with_shortcut=True)
    norm = BatchNorm2d(3)
    alone, added = norm.then_relu(x), norm.then_relu(x, shortcut)  # PyTorch 2.6 forgets what is kept with the result
    assert not any(kept is not None and kept.shape == x.shape for kept in alone.grad_fn.saved_tensors[1:])
    assert added.grad_fn.saved_tensors[1].shape == x.shape


@with_and_without_shortcut
@pytest.mark.parametrize("case", CASES)
def test_threads_do_not_change_the_result(case, layout, with_shortcut):
    shape, ghost = CASES[case]
    x, shortcut, grad = maps(shape, layout, with_shortcut)
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            norm = make_norm("ghost", shape[1], ghost)
            y = norm.then_relu(x, shortcut)
            found.append([y, *gradients(y, grad, x, shortcut, norm.weight, norm.bias), *norm.buffers()])
    finally:
        torch.set_num_threads(before)
    assert_same_bits(found[0], found[1])
    assert_same_bits(found[0], found[2])


@pytest.mark.parametrize(
    "norm", ["batch", "ghost(ghost_size=3)", "group(groups=4)", "batch_group(groups=4)", "batch_renorm(warmup=0)"]
)
@pytest.mark.parametrize(
    "model", ["cnn_small", "cifar_resnet(depth=8)", "wide_resnet(depth=10, widen=1)", "densenet(depth=10)"]
)
def test_networks_train_to_the_same_bits_as_step_by_step(model, norm, layout, monkeypatch):
    images, labels = torch.randn(8, 3, 32, 32).contiguous(memory_format=layout), torch.arange(8)
    fused, served, states = ThenRelu.then_relu, [], []

    def counted(self, x, shortcut=None):
        y = fused(self, x, shortcut)
        served.append(y is not None)
        return y

    for way in (counted, lambda self, x, shortcut=None: None):
        monkeypatch.setattr(ThenRelu, "then_relu", way)
        torch.manual_seed(0)
        network = create_model(model, 10, norm=norm).to(memory_format=layout)
        start = [p.detach().clone() for p in network.parameters()]
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            F.cross_entropy(network(images), labels).backward()
            optimizer.step()
        assert not any(torch.equal(a, b) for a, b in zip(start, network.parameters(), strict=True))
        states.append(network.state_dict())
    assert sum(served) > 4
    assert_same_bits(states[0].values(), states[1].values())
