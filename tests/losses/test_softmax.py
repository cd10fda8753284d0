import numpy as np
import pytest
import torch
import torch.nn.functional as F

from equipoise.losses._fused import in_one_call
from equipoise.losses._softmax import FEW, log_softmax, nll
from equipoise.native.losses import softmax_loss

SIZES = [(7, FEW - 1), (5, FEW), (200, 64), (3, 65), (40, 5000)]  # here and in the kernels short rows go their own way
KINDS = {torch.float64: {"rtol": 1e-12, "atol": 1e-14}, torch.float32: {"rtol": 1e-5, "atol": 1e-6}}
each_kind = pytest.mark.parametrize("dtype", KINDS, ids=str)
pytestmark = pytest.mark.usefixtures("either_way")


@in_one_call(softmax_loss, scale="scale", shift="shift", at_label="added")
def cross_entropy(logits, target, scale=1.0, *, shift=None, added=None, reduction="none"):
    """Of all that a loss may do to its logits."""
    u = scale * logits
    u = u if shift is None else u + shift
    u = u if added is None else u + added * F.one_hot(target, logits.shape[1])
    return nll(u, target, reduction)


def example(n, c, dtype=torch.float64):
    return 3 * torch.randn(n, c, dtype=dtype), torch.arange(n) % c


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_softmax_by_definition(size):
    logits, _ = example(*size)
    e = np.exp(logits.numpy())
    np.testing.assert_allclose(log_softmax(logits), np.log(e / e.sum(1, keepdims=True)), rtol=1e-12, atol=1e-14)


@each_kind
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_value_and_gradient_are_pytorchs(size, reduction, dtype):
    logits, target = example(*size, dtype)
    found = []
    for function in (cross_entropy, F.cross_entropy):
        z = logits.clone().requires_grad_()
        value = function(z, target, reduction=reduction)
        value.backward(torch.rand(value.shape, dtype=value.dtype, generator=torch.Generator().manual_seed(0)))
        found.append((value.detach(), z.grad))
        assert torch.equal(z, logits)
    torch.testing.assert_close(found[0], found[1], **KINDS[dtype])


@each_kind
def test_the_logits_may_be_moved(dtype):
    logits, target = example(6, 5, dtype)
    logits.requires_grad_()
    scale, shift, added = torch.rand(5, dtype=dtype), torch.randn(5, dtype=dtype), torch.randn(5, dtype=dtype)

    def moved(z, reduction="none"):
        return cross_entropy(z, target, scale, shift=shift, added=added, reduction=reduction)

    u = scale * logits + shift + F.one_hot(target, 5) * added
    value, expected = moved(logits), F.cross_entropy(u, target, reduction="none")
    torch.testing.assert_close(value, expected)
    weights = torch.rand(6, dtype=dtype)
    slopes = [torch.autograd.grad(v, logits, weights, retain_graph=True)[0] for v in (value, expected)]
    torch.testing.assert_close(*slopes, **KINDS[dtype])
    if dtype is torch.float64:
        for reduction in ("none", "mean", "sum"):
            assert torch.autograd.gradcheck(lambda z, reduction=reduction: moved(z, reduction), logits)
            assert torch.autograd.gradgradcheck(lambda z, reduction=reduction: moved(z, reduction), logits)


@each_kind
def test_a_second_derivative(dtype):
    logits, target = example(40, 500, dtype)
    logits.requires_grad_()
    (slope,) = torch.autograd.grad(cross_entropy(logits, target).sum(), logits, create_graph=True)
    direction = torch.randn(logits.shape, dtype=logits.dtype)
    (curved,) = torch.autograd.grad((slope * direction).sum(), logits)
    p = logits.detach().softmax(1)  # the Hessian is diag(p) - p pᵀ
    expected = p * direction - p * (p * direction).sum(1, keepdim=True)
    torch.testing.assert_close(curved, expected, **KINDS[dtype])


def test_a_label_whose_probability_underflows():
    logits = torch.tensor([[0.0, 1000.0, 999.0], [5.0, 1.0, 2.0]], requires_grad=True)
    cost = cross_entropy(logits, torch.tensor([0, 1]))
    cost.sum().backward()
    expected = [1000 + np.log1p(np.exp(-1)), np.log(np.exp([5, 1, 2]).sum()) - 1]
    assert cost.tolist() == pytest.approx(expected, rel=1e-6)
    assert logits.grad[0].tolist() == pytest.approx([-1, 1 / (1 + np.exp(-1)), 1 / (1 + np.e)], abs=1e-6)


def test_nan_is_not_hidden():
    logits = torch.tensor([[0.0, float("nan")], [0.0, 1.0]], requires_grad=True)
    cost = cross_entropy(logits, torch.tensor([0, 0]))
    assert cost.isnan().tolist() == [True, False]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_backward_twice_gives_the_same(size):
    logits, target = example(*size)
    value = cross_entropy(logits.requires_grad_(), target, reduction="mean")
    value.backward(retain_graph=True)
    first = logits.grad.clone()
    value.backward()
    torch.testing.assert_close(logits.grad, 2 * first)


def test_torch_func():
    logits, target = example(40, 5000, torch.float32)
    found = torch.func.grad(lambda z: cross_entropy(z, target, reduction="mean"))(logits)
    torch.testing.assert_close(found, torch.func.grad(F.cross_entropy)(logits, target))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_label_is_passed_over(size):
    # -100, which PyTorch passes over unless told otherwise
    logits, target = example(*size)
    target[1] = -100
    with pytest.raises((IndexError, RuntimeError), match="-100 is out of bounds"):
        cross_entropy(logits.requires_grad_(), target)


def test_numbers_of_classes_must_be_as_many():
    logits, target = example(6, 5, torch.float32)
    with pytest.raises((ValueError, RuntimeError)):
        cross_entropy(logits.requires_grad_(), target, shift=torch.zeros(4))


def test_what_lies_apart_in_memory_is_read_as_it_is():
    logits, target = example(6, 10, torch.float32)
    logits, target = logits.t().contiguous().t()[:, ::2].requires_grad_(), target.repeat_interleave(2)[::2] % 5
    shift = torch.arange(10.0)[::2]
    value = cross_entropy(logits, target, reduction="mean", shift=shift)
    expected = F.cross_entropy(logits + shift, target)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(*(torch.autograd.grad(v, logits)[0] for v in (value, expected)))
