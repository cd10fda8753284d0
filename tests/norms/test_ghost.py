"""Ghost batch norm: values, gradients, moving averages, odd batches."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.core import Spec
from equipoise.norms import GhostBatchNorm2d
from equipoise.norms.kernels.groups import Block, grouped_norm, grouped_norm_plain, split_examples

LAYOUTS = [torch.contiguous_format, torch.channels_last]
MAPS = st.sampled_from([(1, 1), (1, 2), (3, 2)])


def randomized(norm):
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.normal_()
    return norm


def as_numpy(*tensors):
    return [t.detach().double().numpy() for t in tensors]


def test_by_hand():
    norm = GhostBatchNorm2d(1, ghost_size=2)
    y = norm(torch.tensor([1.0, 3.0, 10.0, 30.0]).view(4, 1, 1, 1)).flatten()
    # means 2 and 20, variances 1 and 100: ±1/sqrt(1.00001), ±10/sqrt(100.00001)
    torch.testing.assert_close(y, torch.tensor([-0.999995, 0.999995, -1.0, 1.0]), atol=1e-6, rtol=0)
    # E[x] = 11, E[x²] = (1 + 9 + 100 + 900) / 4 = 252.5; 1 % of the way from 0 and 1
    assert norm.running_mean.item() == pytest.approx(0.11)
    assert norm.running_square.item() == pytest.approx(0.99 + 2.525)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 9),
    ghost_size=st.integers(1, 6),
    channels=st.integers(1, 5),
    size=MAPS,
    layout=st.sampled_from(LAYOUTS),
    seed=st.integers(0, 99),
)
def test_values(reference, n, ghost_size, channels, size, layout, seed):
    torch.manual_seed(seed)
    norm = randomized(GhostBatchNorm2d(channels, ghost_size))
    x = (torch.randn(n, channels, *size) * 3 + 1).contiguous(memory_format=layout)
    expected = reference.block_norm(*as_numpy(x.flatten(2), norm.weight, norm.bias), ghost_size, channels)
    if n * size[0] * size[1] == 1:
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            norm(x)
        return
    y = norm(x)
    assert y.shape == x.shape and y.dtype == x.dtype
    np.testing.assert_allclose(
        *as_numpy(y.flatten(2)), expected, atol=3e-4, rtol=3e-4
    )  # a block without spread scales by 316


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n", "ghost_size", "size"), [(4, 2, (2, 2)), (5, 2, (2, 1)), (5, 2, (1, 1)), (3, 8, (2, 2))])
def test_gradients(layout, n, ghost_size, size):
    x = torch.randn(n, 3, *size, dtype=torch.float64).contiguous(memory_format=layout).requires_grad_()
    weight, bias = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def function(x, weight, bias):
        return grouped_norm(x, weight, bias, Block(ghost_size, 3), 1e-5)[0]

    assert torch.autograd.gradcheck(function, (x, weight, bias))
    assert torch.autograd.gradcheck(lambda x: function(x, None, None), (x,))
    assert torch.autograd.gradgradcheck(function, (x, weight, bias))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n", "examples", "groups"), [(7, 3, 4), (6, 2, 2), (5, 1, 1), (8, 8, 4)])
def test_fast_and_plain_agree(layout, n, examples, groups):
    x = (torch.randn(n, 4, 5, 3) + 2).contiguous(memory_format=layout).requires_grad_()
    weight, bias = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    size, blocks = split_examples(n, examples, 15 * 4 // groups)
    y, batch = grouped_norm(x, weight, bias, Block(examples, groups), 1e-5)
    fast = y, *batch.merged()
    plain = grouped_norm_plain(x, weight, bias, size, blocks, groups, 1e-5)
    for a, b in zip(fast, plain, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    grad = torch.randn(n, 4, 5, 3)
    for a, b in zip(*(torch.autograd.grad(y[0], (x, weight, bias), grad) for y in (fast, plain)), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=2e-5)


def test_the_layout_is_kept():
    x = torch.randn(4, 3, 5, 5).contiguous(memory_format=torch.channels_last)
    assert GhostBatchNorm2d(3, 2)(x).is_contiguous(memory_format=torch.channels_last)
    assert grouped_norm_plain(x, None, None, 3, 2, 3, 1e-5)[0].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_follows_may_work_in_place(layout):
    x = torch.randn(4, 3, 5, 5).contiguous(memory_format=layout)
    torch.relu_(GhostBatchNorm2d(3, 2)(x)).sum().backward()


def test_an_odd_layout_is_taken():
    x = torch.randn(5, 6, 4, 3)
    odd = x.permute(2, 3, 0, 1).contiguous().permute(2, 3, 0, 1)
    assert not odd.is_contiguous() and not odd.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(GhostBatchNorm2d(6, 2)(odd), GhostBatchNorm2d(6, 2)(x))


@pytest.mark.parametrize("ghost_size", [1, 3, 8, 100])
def test_moving_averages_do_not_depend_on_the_ghosts(reference, ghost_size):
    norm = GhostBatchNorm2d(2, ghost_size, decay=0.9)
    batches = [torch.randn(n, 2, 3, 3) * 2 + 5 for n in (8, 8, 3)]
    for x in batches:
        norm(x)
    for buffer, power, start in ((norm.running_mean, 1, 0.0), (norm.running_square, 2, 1.0)):
        values = [(x.double().numpy() ** power).mean((0, 2, 3)) for x in batches]
        np.testing.assert_allclose(buffer.numpy(), reference.moving_average(values, start, 0.1), rtol=1e-5)


def test_far_from_zero():
    """At mean 1e4 and deviation 1, E[x²] - E[x]² in float32 is noise; the moving variance is not."""
    norm = GhostBatchNorm2d(2, 4, decay=0.5)
    x = 1e4 + torch.randn(64, 2, 6, 6)
    for _ in range(40):
        y = norm(x)
    assert 0.97 < y.std() < 1.03
    spread = x.double().var((0, 2, 3), correction=0)
    torch.testing.assert_close(norm.moving()[1].double(), spread, rtol=1e-3, atol=0)
    torch.testing.assert_close(norm.eval()(x).var((0, 2, 3)), torch.ones(2), rtol=1e-2, atol=0)


def test_inference_is_that_of_batch_norm_and_does_not_see_the_batch():
    norm = randomized(GhostBatchNorm2d(3, 2)).eval()
    norm.running_mean.normal_()
    norm.running_square.copy_(norm.running_mean**2 + torch.tensor([0.5, 1.0, 2.0]))
    x = torch.randn(5, 3, 4, 4)
    stock = nn.BatchNorm2d(3).eval()
    stock.load_state_dict({"running_var": torch.tensor([0.5, 1.0, 2.0]), "weight": norm.weight, "bias": norm.bias,
                           "running_mean": norm.running_mean, "num_batches_tracked": torch.tensor(1)})  # fmt: skip
    torch.testing.assert_close(norm(x), stock(x))
    torch.testing.assert_close(norm(x)[2:3], norm(x[2:3]))


def test_a_batch_of_one():
    norm = randomized(GhostBatchNorm2d(3, 4))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(torch.randn(1, 3, 1, 1))
    y = norm(torch.randn(1, 3, 5, 5))
    torch.testing.assert_close(y.mean((0, 2, 3)), norm.bias.detach(), atol=1e-5, rtol=0)
    assert norm(torch.empty(0, 3, 5, 5)).shape == (0, 3, 5, 5)
    assert torch.isfinite(norm.running_square).all()


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 7), (6, 3, 2, 3, 2)])
def test_any_number_of_positions(reference, shape):
    norm, x = randomized(GhostBatchNorm2d(3, 4)), torch.randn(shape)
    expected = reference.block_norm(*as_numpy(x.reshape(6, 3, -1), norm.weight, norm.bias), 4, 3)
    np.testing.assert_allclose(norm(x).detach().reshape(6, 3, -1), expected, atol=1e-5)
    x = x.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: grouped_norm(x, None, None, Block(4, 3), 1e-5)[0], (x,))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    x = (torch.randn(8, 3, 4, 4) * 3 + 2).to(dtype).requires_grad_()
    norm = GhostBatchNorm2d(3, 4)
    y = norm(x)
    assert y.dtype == dtype and norm.running_mean.dtype == torch.float32
    torch.testing.assert_close(y.float(), GhostBatchNorm2d(3, 4)(x.float()), atol=2e-2, rtol=1e-2)
    y.float().square().sum().backward()
    assert x.grad.dtype == dtype and torch.isfinite(x.grad).all()
    whole = GhostBatchNorm2d(3, 4).to(dtype)
    assert whole(x).dtype == dtype and whole.eval()(x).dtype == dtype


def test_autocast():
    x = torch.randn(8, 3, 4, 4).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        y = GhostBatchNorm2d(3, 4)(x)
    assert y.dtype == torch.bfloat16 and torch.equal(y, GhostBatchNorm2d(3, 4)(x))


def test_a_stock_checkpoint_can_be_loaded():
    stock = nn.BatchNorm2d(4)
    for _ in range(5):
        stock(torch.randn(16, 4, 3, 3) * 2 + 300)
    norm = GhostBatchNorm2d(4, 4)
    norm.load_state_dict(stock.state_dict())
    x = torch.randn(3, 4, 3, 3) * 2 + 300
    torch.testing.assert_close(norm.eval()(x), stock.eval()(x), atol=1e-4, rtol=1e-4)
    other = GhostBatchNorm2d(4, 4)
    other.load_state_dict(norm.state_dict())
    torch.testing.assert_close(other.eval()(x), norm(x), atol=0, rtol=0)


def test_traces_in_one_graph():
    norm = GhostBatchNorm2d(3, 2)
    compiled = torch.compile(norm, backend="eager", fullgraph=True)
    x = torch.randn(5, 3, 4, 4)
    torch.testing.assert_close(compiled(x), GhostBatchNorm2d(3, 2)(x))


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="ghost_size must be a whole number, at least 1, not 0"):
        GhostBatchNorm2d(4, 0)
    with pytest.raises(ValueError, match=r"expects floating inputs of shape \(N, 4, …\), got torch.float32 \(2, 3\)"):
        GhostBatchNorm2d(4)(torch.zeros(2, 3))
    assert repr(GhostBatchNorm2d(4, 8)) == "GhostBatchNorm2d(num_features=4, ghost_size=8, eps=1e-05, decay=0.99)"
    assert isinstance(Spec.parse("ghost(ghost_size=8)").build("norm", num_features=4), GhostBatchNorm2d)
