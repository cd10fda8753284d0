"""The kernels of group and batch-group norm on a GPU against the plain formula.

Without a GPU the kernels themselves can be tried, slowly, in Triton's interpreter: TRITON_INTERPRET=1.
"""

import pytest
import torch

from equipoise.norms import (
    BatchGroupNorm2d,
    GhostBatchNorm2d,
    GroupNorm2d,
    example_weighted_norm,
    set_example_weight,
)
from equipoise.norms._moving import set_moving
from equipoise.norms.kernels.groups import PerChannel, Statistics, grouped_norm_plain, split_examples

from .triton import DEVICE, LAYOUTS, NEEDS_TRITON, TOLERANCE, assert_same_gradients, on_gpu

pytestmark = NEEDS_TRITON
HALVES = (torch.float16, torch.bfloat16)
# (N, C, H, W), examples in a block, channel groups: a last block that is smaller, odd channels, one position, groups
# wider than a program and rows longer than one
CASES = [
    ((6, 8, 5, 5), 2, 2),
    ((7, 6, 3, 3), 2, 3),
    ((4, 6, 1, 1), 2, 3),
    ((5, 70, 3, 3), 1, 7),
    ((3, 130, 2, 2), 2, 2),
    ((2, 4, 80, 80), 2, 2),
    ((5, 3, 7, 7), 3, 1),
]


def inputs(shape, dtype, layout):
    generator = torch.Generator().manual_seed(1)
    x = (torch.randn(shape, generator=generator) * 2 + 1.5).to(DEVICE, dtype)
    x = x.contiguous(memory_format=LAYOUTS[layout]).requires_grad_()
    weight, bias = (torch.randn(shape[1], generator=generator).to(DEVICE).requires_grad_() for _ in range(2))
    return x, weight, bias, torch.randn(shape, generator=generator).to(DEVICE, dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "examples", "groups", "dtype"),
    [(*case, torch.float32) for case in CASES] + [(*case, dtype) for case in CASES[:2] for dtype in HALVES],
)
def test_values_and_gradients(shape, examples, groups, dtype, layout):
    from equipoise.norms.kernels.triton_blocks import BlockNormTriton

    x, weight, bias, grad = inputs(shape, dtype, layout)
    size, blocks = split_examples(shape[0], examples, x[0].numel() // groups)
    y, mean, var = BlockNormTriton.apply(x, weight, bias, size, blocks, groups, 1e-5)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    expected, *statistics = grouped_norm_plain(*exact, size, blocks, groups, 1e-5)
    tolerance = TOLERANCE[dtype]
    assert y.dtype == dtype and y.is_contiguous(memory_format=LAYOUTS[layout])
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)
    for a, b in zip(Statistics(mean, var, 1, shape[0]).merged(), statistics, strict=True):
        torch.testing.assert_close(a.double(), b, atol=1e-4, rtol=1e-4)
    assert_same_gradients(y, (x, weight, bias), expected, exact, grad, tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_gamma_and_beta(layout):
    from equipoise.norms.kernels.triton_blocks import BlockNormTriton

    x, _, _, grad = inputs((7, 6, 3, 3), torch.float32, layout)
    y = BlockNormTriton.apply(x, None, None, 2, 4, 3, 1e-5)[0]
    expected = grouped_norm_plain(x, None, None, 2, 4, 3, 1e-5)[0]
    torch.testing.assert_close(y, expected, atol=5e-5, rtol=5e-5)
    (found,), (wanted,) = (torch.autograd.grad(out, x, grad) for out in (y, expected))
    torch.testing.assert_close(found, wanted, atol=5e-5, rtol=5e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_far_from_zero(layout):
    """Mean 1e4, deviation 2, float32: sums around 0 would leave nothing of the variance."""
    from equipoise.norms.kernels.triton_blocks import BlockNormTriton

    x = inputs((4, 6, 20, 20), torch.float32, layout)[0].detach() + 1e4
    y = BlockNormTriton.apply(x, None, None, 2, 2, 3, 1e-5)[0]
    expected = grouped_norm_plain(x.double(), None, None, 2, 2, 3, 1e-5)[0]
    torch.testing.assert_close(y.double(), expected, atol=5e-3, rtol=5e-3)


def test_it_can_be_differentiated_twice():
    from equipoise.norms.kernels.triton_blocks import BlockNormTriton

    x, weight, bias, _ = inputs((5, 4, 2, 2), torch.float32, "contiguous")
    seconds = []
    for function in (BlockNormTriton.apply, grouped_norm_plain):
        (first,) = torch.autograd.grad(function(x, weight, bias, 2, 3, 2, 1e-5)[0].pow(3).sum(), x, create_graph=True)
        seconds.append(torch.autograd.grad(first.square().sum(), (x, weight, bias)))
    for a, b in zip(*seconds, strict=True):
        torch.testing.assert_close(a, b, atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "groups", "dtype"),
    [
        ((3, 6, 7, 7), 3, torch.float32),
        ((3, 6, 7, 7), 3, torch.bfloat16),
        ((2, 70, 2, 2), 7, torch.float32),
        ((2, 4, 80, 80), 1, torch.float16),
    ],
)
def test_example_weighing(shape, groups, dtype, layout):
    from equipoise.norms.kernels.triton_blocks import weighed_groups

    x, weight, bias, _ = inputs(shape, dtype, layout)
    mean, var = torch.randn(shape[1], device=DEVICE), torch.rand(shape[1], device=DEVICE) + 0.5
    exact = [t.detach().double() for t in (x, mean, var, weight, bias)]
    for alpha in (0.1, 1.0):
        with torch.no_grad():
            y = weighed_groups(x, PerChannel(mean, var, weight, bias), alpha, 1e-5, groups)
        assert y.dtype == dtype and y.is_contiguous(memory_format=LAYOUTS[layout])
        expected = example_weighted_norm(*exact, alpha, groups=groups)
        torch.testing.assert_close(y.double(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("mean", [0.5, 2e4])
def test_moving_variance(mean):
    from equipoise.norms.kernels.triton_moving import moving_variance_triton

    state = [torch.zeros(300, device=DEVICE) for _ in range(3)]
    var = torch.rand(300, device=DEVICE) + 0.1
    set_moving(*state, torch.full((300,), mean, device=DEVICE), var)
    torch.testing.assert_close(moving_variance_triton(*state), var, rtol=1e-5, atol=0)


@on_gpu
@pytest.mark.parametrize(
    "make", [lambda: BatchGroupNorm2d(6, 3), lambda: GroupNorm2d(6, 2), lambda: GhostBatchNorm2d(6, 4)]
)
@pytest.mark.parametrize("shape", [(9, 9), (1, 1)])
def test_modules_do_on_a_gpu_what_they_do_on_the_cpu(make, shape):
    here, there = make(), make().cuda()
    for n in (16, 7, 1 if shape != (1, 1) else 2):
        x = torch.randn(n, 6, *shape) * 3 + 2
        a, b = x.clone().requires_grad_(), x.cuda().requires_grad_()
        ya, yb = here(a), there(b)
        torch.testing.assert_close(yb.cpu(), ya, atol=1e-3, rtol=1e-3)
        ya.pow(3).sum().backward()
        yb.pow(3).sum().backward()
        torch.testing.assert_close(b.grad.cpu(), a.grad, atol=1e-2, rtol=1e-2)
    torch.testing.assert_close(there.running_square.cpu(), here.running_square, atol=1e-4, rtol=1e-4)
    for alpha in (0.0, 0.3):
        set_example_weight(here.eval(), alpha)
        set_example_weight(there.eval(), alpha)
        with torch.no_grad():
            torch.testing.assert_close(there(x.cuda()).cpu(), here(x), atol=1e-3, rtol=1e-3)
