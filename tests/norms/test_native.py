"""The kernels in C, and what serves without them, against float64 references written from the formulas."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from equipoise import native
from equipoise.norms import BatchNorm2d, GhostBatchNorm2d, example_weighted_norm
from equipoise.norms.kernels.groups import Block, grouped_norm, moments_of_batch

EPS = 1e-5
# (N, C, H, W), examples in a block, channel groups
CASES = {
    "batch norm": ((6, 8, 5, 5), 6, 8),
    "ghosts": ((8, 16, 7, 7), 4, 16),
    "a smaller last ghost": ((7, 6, 4, 4), 3, 6),
    "more blocks than threads": ((20, 8, 4, 4), 2, 8),
    "batch-group norm": ((5, 12, 3, 3), 2, 4),
    "group norm": ((4, 8, 6, 6), 1, 2),
    "odd channels": ((4, 7, 9, 9), 2, 7),
    "three channels": ((4, 3, 17, 19), 2, 3),
    "one channel": ((5, 1, 11, 3), 2, 1),
    "one position": ((9, 10, 1, 1), 4, 10),
    "one example": ((1, 5, 6, 6), 16, 5),
    "more channels than a tile has": ((2, 1030, 3, 3), 2, 1030),
    "a large map": ((3, 4, 70, 70), 2, 4),
    "enough for threads": ((6, 24, 40, 40), 2, 12),
    "too large for the cache": ((9, 64, 44, 44), 4, 64),
    "too large and odd": ((51, 431, 7, 7), 51, 431),
}


@pytest.fixture(params=["kernels", "pytorch"], autouse=True)
def way(request, monkeypatch):
    if request.param == "pytorch":
        monkeypatch.setattr(native, "library", lambda: None)
    elif native.library() is None:
        pytest.skip("the package was installed without a C compiler")
    return request.param


class Truth(NamedTuple):
    y: np.ndarray
    dx: np.ndarray
    d_weight: np.ndarray
    d_bias: np.ndarray


def truth(reference, x, weight, bias, grad, examples, groups):
    """y and the gradients in float64, block by block; all (N, C, positions) and (C,)."""
    x, weight, bias, grad = (t.detach().double().numpy() for t in (x.flatten(2), weight, bias, grad.flatten(2)))
    y, dx, d_weight, d_bias = np.empty_like(x), np.empty_like(x), np.zeros_like(weight), np.zeros_like(bias)
    width = x.shape[1] // groups
    for rows in reference.example_ranges(len(x), examples, x.shape[2] * width):
        for g in range(groups):
            c = slice(g * width, (g + 1) * width)
            block, dy = x[rows.start : rows.stop, c], grad[rows.start : rows.stop, c]
            std = np.sqrt(((block - block.mean()) ** 2).mean() + EPS)
            unit, scaled = (block - block.mean()) / std, dy * weight[c, None]
            y[rows.start : rows.stop, c] = unit * weight[c, None] + bias[c, None]
            dx[rows.start : rows.stop, c] = (scaled - scaled.mean() - unit * (scaled * unit).mean()) / std
            d_weight[c] += (dy * unit).sum((0, 2))
            d_bias[c] += dy.sum((0, 2))
    return Truth(y, dx, d_weight, d_bias)


def inputs(shape, layout, offset=0.5):
    torch.manual_seed(0)
    x = (torch.randn(shape) + offset).contiguous(memory_format=layout).requires_grad_()
    weight, bias = (torch.randn(shape[1]).requires_grad_() for _ in range(2))
    return x, weight, bias, torch.randn(shape)


def close(found, wanted, tolerance):
    np.testing.assert_allclose(found.detach().flatten(2) if found.dim() > 2 else found.detach(), wanted, **tolerance)


@pytest.mark.parametrize("offset", [0.5, 1e4])
@pytest.mark.parametrize("case", CASES)
def test_values_gradients_and_statistics(reference, case, layout, offset, way):
    shape, examples, groups = CASES[case]
    x, weight, bias, grad = inputs(shape, layout, offset)
    y, batch = grouped_norm(x, weight, bias, Block(examples, groups), EPS)
    wanted = truth(reference, x, weight, bias, grad, examples, groups)
    loose = 10 if way == "pytorch" else 1  # its sums are not as exact
    # float32 has steps of 1e-3 at 1e4: no mean of it is kept more exactly
    tolerance = {"atol": 2e-4, "rtol": 2e-4} if offset < 1 else {"atol": 1e-2 * loose, "rtol": 1e-2 * loose}
    assert y.is_contiguous(memory_format=layout)
    close(y, wanted.y, tolerance)
    found = torch.autograd.grad(y, (x, weight, bias), grad)
    assert found[0].is_contiguous(memory_format=layout)
    sums = tolerance | {"atol": tolerance["atol"] * np.sqrt(x.numel() / shape[1])}
    close(found[0], wanted.dx, tolerance)
    close(found[1], wanted.d_weight, sums)
    close(found[2], wanted.d_bias, sums)
    exact = x.detach().double()
    mean, var = batch.merged()
    close(mean, exact.mean((0, 2, 3)), {"atol": 1e-6, "rtol": 3e-7 * loose})
    close(var, exact.var((0, 2, 3), correction=0), {"atol": 1e-6, "rtol": 1e-3 * loose if offset > 1 else 1e-5})


@pytest.mark.parametrize("case", ["ghosts", "a smaller last ghost", "batch-group norm"])
def test_without_gamma_or_beta(reference, case, layout):
    shape, examples, groups = CASES[case]
    x, weight, bias, grad = inputs(shape, layout)
    for affine in ((None, None), (weight, None), (None, bias)):
        y, _ = grouped_norm(x, *affine, Block(examples, groups), EPS)
        full = (
            torch.ones(shape[1]) if affine[0] is None else weight,
            torch.zeros(shape[1]) if affine[1] is None else bias,
        )
        wanted = truth(reference, x, *full, grad, examples, groups)
        close(y, wanted.y, {"atol": 1e-4, "rtol": 1e-4})
        close(torch.autograd.grad(y, x, grad)[0], wanted.dx, {"atol": 1e-4, "rtol": 1e-4})


def test_inputs_with_gaps_between_numbers(reference, layout):
    x, weight, bias, grad = inputs((6, 8, 5, 10), layout)
    part, part_grad = x[:, :, :, ::2], grad[:, :, :, ::2]
    y, _ = grouped_norm(part, weight, bias, Block(3, 8), EPS)
    wanted = truth(reference, part, weight, bias, part_grad, 3, 8)
    close(y, wanted.y, {"atol": 1e-4, "rtol": 1e-4})
    (found,) = torch.autograd.grad(y, x, part_grad)
    close(found[:, :, :, ::2], wanted.dx, {"atol": 1e-4, "rtol": 1e-4})
    assert not found[:, :, :, 1::2].any()


@pytest.mark.parametrize("case", ["ghosts", "a smaller last ghost", "batch-group norm", "one position"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_a_number_stays_within_its_block(case, layout, value):
    shape, examples, groups = CASES[case]
    x, weight, bias, _ = (t.detach() for t in inputs(shape, layout))
    x[1, 0, 0, 0] = value
    width = shape[1] // groups
    y, batch = grouped_norm(x, weight, bias, Block(examples, groups), EPS)
    assert y[:examples, :width].isnan().any(3).any(2).any(0).all()
    assert y[examples:].isfinite().all() and y[:, width:].isfinite().all()
    mean, var = batch.merged()
    assert not mean[0].isfinite() and not var[0].isfinite() and mean[1:].isfinite().all()


@pytest.mark.parametrize("case", CASES)
def test_threads_do_not_change_the_result(case, layout, way):
    if way == "pytorch":
        pytest.skip("PyTorch's sums depend on the number of threads")
    shape, examples, groups = CASES[case]
    x, weight, bias, grad = inputs(shape, layout)
    results, threads = [], torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            y, batch = grouped_norm(x, weight, bias, Block(examples, groups), EPS)
            weighed = example_weighted_norm(
                x.detach(), weight.detach(), bias.detach() ** 2, None, None, 0.3, groups=groups
            )
            results.append([y, *batch.merged(), weighed, *torch.autograd.grad(y, (x, weight, bias), grad)])
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_example_weighing(reference, case, layout, alpha):
    shape, _, groups = CASES[case]
    x, weight, bias, _ = (t.detach() for t in inputs(shape, layout))
    mean, var = torch.randn(shape[1]), torch.rand(shape[1]) + 0.5
    y = example_weighted_norm(x, mean, var, weight, bias, alpha, EPS, groups=groups)
    exact = [t.double().numpy() for t in (x.flatten(2), mean, var + mean.double() ** 2, weight, bias)]
    assert y.is_contiguous(memory_format=layout)
    tolerance = 1e-4 if x[0].numel() > groups or alpha < 1 else 0.05  # one value by itself is 0 / sqrt(epsilon)
    close(y, reference.weighted_norm(*exact, alpha, groups, EPS), {"atol": tolerance, "rtol": 1e-4})


def test_an_outlier_among_the_first_values(layout):
    """The kernels guess the mean from them."""
    x = torch.randn(2, 5, 60, 60).contiguous(memory_format=layout)
    x[:, :, 0, :4] = 1e4
    y, batch = grouped_norm(x, None, None, Block(1, 5), EPS)
    exact = x.double()
    var, mean = torch.var_mean(exact, (2, 3), correction=0, keepdim=True)
    torch.testing.assert_close(y.double(), (exact - mean) / (var + EPS).sqrt(), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(batch.merged()[1].double(), exact.var((0, 2, 3), correction=0), rtol=1e-4, atol=0)


def test_differentiated_twice(layout):
    x, weight, bias, grad = inputs((5, 4, 3, 3), layout)
    leaves = x, weight, bias
    exact = [t.detach().double().requires_grad_() for t in leaves]
    penalties = []
    for tensors in (leaves, exact):
        y, _ = grouped_norm(*tensors, Block(2, 4), EPS)
        (slope,) = torch.autograd.grad(y, tensors[0], grad.to(y.dtype), create_graph=True)
        penalties.append(torch.autograd.grad((slope**2).sum(), tensors[:2]))
    for a, b in zip(*penalties, strict=True):
        torch.testing.assert_close(a.double(), b, atol=1e-3, rtol=1e-3)


def test_batch_norm_moves_its_averages_as_pytorch_does(layout):
    ours, stock = BatchNorm2d(6), nn.BatchNorm2d(6)
    for n in (5, 2):
        x = (torch.randn(n, 6, 3, 3) * 3 + 2).contiguous(memory_format=layout)
        torch.testing.assert_close(ours(x), stock(x), atol=1e-5, rtol=1e-5)
    for name, buffer in stock.named_buffers():
        torch.testing.assert_close(ours.get_buffer(name), buffer)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        ours(torch.zeros(1, 6, 1, 1))


def test_the_moving_averages_are_known_to_have_changed():
    norm = GhostBatchNorm2d(3)
    before = norm.running_mean._version
    norm(torch.randn(4, 3, 2, 2))
    assert norm.running_mean._version > before


@pytest.mark.parametrize("offset", [0.5, 1e4])
@pytest.mark.parametrize("case", CASES)
def test_moments_of_the_batch(case, layout, offset):
    x = inputs(CASES[case][0], layout, offset)[0]
    exact = x.detach().double().numpy()
    mean, var = moments_of_batch(x, EPS)
    assert not mean.requires_grad and mean.dtype is var.dtype is torch.float32
    np.testing.assert_allclose(mean, exact.mean((0, 2, 3)), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(var, exact.var((0, 2, 3)), rtol=1e-5 if offset < 1 else 2e-3)
    assert moments_of_batch(x.bfloat16(), EPS)[0].dtype is torch.float32
