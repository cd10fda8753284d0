"""Each way that blocks are normalized on the CPU, against the plain formula in float64."""

import pytest
import torch

from equipoise.norms import example_weighted_norm
from equipoise.norms.kernels.cpu import block_norm
from equipoise.norms.kernels.groups import grouped_norm_plain, split_examples

LAYOUTS = [torch.contiguous_format, torch.channels_last]
# (N, C, H, W), examples in a block, channel groups
CASES = {
    "small blocks": ((6, 4, 3, 3), 2, 2),
    "a last block that differs": ((7, 4, 3, 3), 2, 2),
    "single positions": ((8, 6, 1, 1), 4, 3),
    "tall ghosts": ((4, 3, 32, 32), 2, 3),
    "tall ghosts and a rest": ((5, 2, 32, 40), 2, 2),
    "wide groups": ((4, 16, 4, 4), 2, 2),
    "large blocks": ((4, 64, 34, 34), 2, 8),
    "many small blocks": ((20, 8, 64, 64), 1, 4),
    "the whole batch": ((5, 6, 5, 5), 5, 6),
}


def inputs(shape, layout, offset):
    x = (torch.randn(shape) * 2 + offset).contiguous(memory_format=layout).requires_grad_()
    weight, bias = (torch.randn(shape[1]).requires_grad_() for _ in range(2))
    return x, weight, bias, torch.randn(shape)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("offset", [0.5, 300.0])  # the second so far from 0 that E[x²] - E[x]² is no variance
@pytest.mark.parametrize("case", CASES)
def test_values_statistics_and_gradients(case, offset, layout):
    shape, examples, groups = CASES[case]
    x, weight, bias, grad = inputs(shape, layout, offset)
    size, blocks = split_examples(shape[0], examples, x[0].numel() // groups)
    y, batch = block_norm(x, weight, bias, size, blocks, groups, 1e-5)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    expected, mean, var = grouped_norm_plain(*exact, size, blocks, groups, 1e-5)
    tolerance = 1e-4 if offset < 1 else 1e-3
    assert y.is_contiguous(memory_format=layout) and not y._is_view()
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(batch.merged()[0].double(), mean, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(batch.merged()[1].double(), var, atol=0, rtol=2e-4)
    found = torch.autograd.grad(y, (x, weight, bias), grad)
    wanted = torch.autograd.grad(expected, exact, grad.double())
    assert found[0].is_contiguous(memory_format=layout)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a.double(), b, atol=tolerance * max(1.0, b.abs().max().item()), rtol=tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_epsilon_is_no_part_of_the_variance(case, layout):
    shape, examples, groups = CASES[case]
    x = (torch.randn(shape) * 0.01).contiguous(memory_format=layout)  # a variance of ten times epsilon
    size, blocks = split_examples(shape[0], examples, x[0].numel() // groups)
    _, batch = block_norm(x, None, None, size, blocks, groups, 1e-5)
    exact = x.double().var((0, 2, 3), correction=0)
    torch.testing.assert_close(batch.merged()[1].double(), exact, rtol=1e-3, atol=0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", ["small blocks", "tall ghosts", "wide groups"])
def test_without_gamma_or_beta(case, layout):
    shape, size, groups = CASES[case]
    x, weight, bias, grad = inputs(shape, layout, 0.5)
    for affine in ((None, None), (weight, None), (None, bias)):
        leaves = [x, *(t for t in affine if t is not None)]
        y, _ = block_norm(x, *affine, size, shape[0] // size, groups, 1e-5)
        expected, _, _ = grouped_norm_plain(x, *affine, size, shape[0] // size, groups, 1e-5)
        torch.testing.assert_close(y, expected, atol=1e-4, rtol=1e-4)
        for a, b in zip(*(torch.autograd.grad(out, leaves, grad) for out in (y, expected)), strict=True):
            torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_a_value_that_is_not_a_number_stays_one(case, layout):
    shape, examples, groups = CASES[case]
    x = torch.randn(shape).contiguous(memory_format=layout)
    x[0, 0, 0, 0] = float("nan")
    size, blocks = split_examples(shape[0], examples, x[0].numel() // groups)
    y, batch = block_norm(x, None, None, size, blocks, groups, 1e-5)
    assert y[0, 0].isnan().all() and batch.merged()[0][0].isnan()
    assert blocks == 1 or y[-1].isfinite().all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("alpha", [0.1, 0.9, 1.0])
@pytest.mark.parametrize(("offset", "outlier"), [(0.5, 1.0), (300.0, 1.0), (0.5, 1000.0)])
def test_example_weighing(offset, outlier, alpha, layout):
    """Far from 0 altogether, and one example far from where the moving averages are."""
    x, weight, bias, _ = inputs((3, 6, 8, 8), layout, offset)
    x = x.detach()
    x[1] += outlier
    mean, var = torch.full((6,), offset), torch.rand(6) * 3 + 1
    exact = [t.detach().double().requires_grad_() for t in (x, mean, var, weight, bias)]  # the way that keeps a graph
    for groups in (6, 2):
        with torch.no_grad():
            y = example_weighted_norm(x, mean, var, weight, bias, alpha, groups=groups)
        expected = example_weighted_norm(*exact, alpha, groups=groups)
        torch.testing.assert_close(y.double(), expected, atol=2e-3, rtol=1e-3)
