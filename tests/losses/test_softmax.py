import numpy as np
import pytest
import torch
import torch.nn.functional as F

from equipoise.losses import _softmax
from equipoise.losses._softmax import cross_entropy, log_softmax, many, shifted_cross_entropy, softmax, softmax_cost

SIZES = [(7, 3), (6, 15), (5, 16), (40, 5000)]  # columns, columns, rows, closed form


def example(n, c, dtype=torch.float64):
    return 3 * torch.randn(n, c, dtype=dtype), torch.arange(n) % c


def test_the_sizes_take_all_three_routes():
    assert [c < _softmax.FEW for _, c in SIZES] == [True, True, False, False]
    assert [many(torch.empty(size)) for size in SIZES] == [False, False, False, True]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_softmax_by_definition(size):
    logits, _ = example(*size)
    e = np.exp(logits.numpy())
    np.testing.assert_allclose(softmax(logits), e / e.sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(log_softmax(logits), np.log(e / e.sum(1, keepdims=True)), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_value_and_gradient_are_pytorchs(size, reduction):
    logits, target = example(*size)
    found = []
    for function in (cross_entropy, lambda z, y, r: F.cross_entropy(z, y, reduction=r)):
        z = logits.clone().requires_grad_()
        value = function(z, target, reduction)
        value.backward(torch.rand(value.shape, dtype=value.dtype, generator=torch.Generator().manual_seed(0)))
        found.append((value.detach(), z.grad))
        assert torch.equal(z, logits)
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-14)


def test_the_logits_may_be_moved(as_many):
    logits, target = example(6, 5)
    logits.requires_grad_()
    scale, shift = torch.rand(5, dtype=torch.float64), torch.randn(6, 5, dtype=torch.float64)

    def moved(z, reduction="none"):
        return cross_entropy(z, target, reduction, lambda z: scale * z + shift, scale)

    torch.testing.assert_close(moved(logits), F.cross_entropy(scale * logits + shift, target, reduction="none"))
    for reduction in ("none", "mean", "sum"):
        assert torch.autograd.gradcheck(lambda z, reduction=reduction: moved(z, reduction), logits)
        assert torch.autograd.gradgradcheck(lambda z, reduction=reduction: moved(z, reduction), logits)
    assert torch.autograd.gradcheck(lambda z: shifted_cross_entropy(z, target, shift), logits)


def test_a_second_derivative_of_the_closed_form():
    logits, target = example(40, 5000)
    logits.requires_grad_()
    (slope,) = torch.autograd.grad(cross_entropy(logits, target).sum(), logits, create_graph=True)
    direction = torch.randn(logits.shape, dtype=logits.dtype)
    (curved,) = torch.autograd.grad((slope * direction).sum(), logits)
    p = logits.detach().softmax(1)  # the Hessian is diag(p) - p pᵀ
    torch.testing.assert_close(curved, p * direction - p * (p * direction).sum(1, keepdim=True), rtol=1e-10, atol=1e-14)


def test_a_label_whose_probability_underflows():
    logits = torch.tensor([[0.0, 1000.0, 999.0], [5.0, 1.0, 2.0]])
    cost, slope = softmax_cost(logits, torch.tensor([0, 1]))
    expected = [1000 + np.log1p(np.exp(-1)), np.log(np.exp([5, 1, 2]).sum()) - 1]
    assert cost.flatten().tolist() == pytest.approx(expected, rel=1e-6)
    assert slope[0].tolist() == pytest.approx([-1, 1 / (1 + np.exp(-1)), 1 / (1 + np.e)], abs=1e-6)


def test_nan_is_not_hidden():
    logits = torch.tensor([[0.0, float("nan")], [0.0, 1.0]])
    cost, _ = softmax_cost(logits, torch.tensor([0, 0]))
    assert cost.flatten().isnan().tolist() == [True, False]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_backward_twice_gives_the_same(size):
    logits, target = example(*size)
    value = cross_entropy(logits.requires_grad_(), target, "mean")
    value.backward(retain_graph=True)
    first = logits.grad.clone()
    value.backward()
    torch.testing.assert_close(logits.grad, 2 * first)


def test_torch_func():
    logits, target = example(40, 5000)
    found = torch.func.grad(lambda z: cross_entropy(z, target, "mean"))(logits)
    torch.testing.assert_close(found, torch.func.grad(F.cross_entropy)(logits, target))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_label_is_passed_over(size):
    # -100, which PyTorch passes over unless told otherwise
    logits, target = example(*size)
    target[1] = -100
    with pytest.raises((IndexError, RuntimeError), match="-100 is out of bounds"):
        cross_entropy(logits.requires_grad_(), target)
