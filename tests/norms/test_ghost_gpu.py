"""The fused kernels against the plain formula.

Without a GPU the kernels themselves can be tried, slowly, in Triton's interpreter: TRITON_INTERPRET=1.
"""

import pytest
import torch
from torch import nn

from equipoise.norms import BatchNorm2d, BatchRenorm2d, GhostBatchNorm2d, example_weighted_norm, set_example_weight
from equipoise.norms._moving import moving_variance, set_moving
from equipoise.norms.kernels.groups import Statistics, grouped_norm_plain, split_examples

from .triton import DEVICE, LAYOUTS, NEEDS_TRITON, TOLERANCE, assert_same_gradients, on_gpu

pytestmark = NEEDS_TRITON
# (N, C, H, W) and ghost size: odd channels, a small last ghost, one position, single examples, and ghosts so large
# that a program reads them twice
CASES = [
    ((8, 3, 4, 4), 2),
    ((9, 5, 3, 3), 4),
    ((7, 16, 1, 1), 3),
    ((1, 6, 1, 1), 4),
    ((5, 70, 2, 2), 16),
    ((6, 3, 7, 7), 1),
    ((4, 2, 56, 56), 2),
    ((5, 2, 104, 96), 3),
]


def inputs(shape, layout, dtype, mean=1.5):
    generator = torch.Generator().manual_seed(1)
    x = (torch.randn(shape, generator=generator) * 2 + mean).to(DEVICE, dtype)
    weight, bias = (torch.randn(shape[1], generator=generator).to(DEVICE).requires_grad_() for _ in range(2))
    grad = torch.randn(shape, generator=generator).to(DEVICE, dtype)
    layout = LAYOUTS[layout]
    return x.contiguous(memory_format=layout).requires_grad_(), weight, bias, grad.contiguous(memory_format=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("shape", "ghost_size"), CASES)
def test_values_gradients_and_statistics(shape, ghost_size, dtype, layout):
    from equipoise.norms.kernels.triton import GhostNormTriton

    x, weight, bias, grad = inputs(shape, layout, dtype)
    size, blocks = split_examples(shape[0], ghost_size, shape[2] * shape[3])
    y, mean, var = GhostNormTriton.apply(x, weight, bias, size, blocks, 1e-5)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    expected, exact_mean, exact_var = grouped_norm_plain(*exact, size, blocks, shape[1], 1e-5)
    tolerance = TOLERANCE[dtype]
    assert y.dtype == dtype and y.is_contiguous(memory_format=LAYOUTS[layout])
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)
    merged = Statistics(mean, var, size, shape[0]).merged()
    torch.testing.assert_close(merged[0].double(), exact_mean, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(merged[1].double(), exact_var, atol=1e-5, rtol=1e-5)
    assert_same_gradients(y, (x, weight, bias), expected, exact, grad, tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_gamma_and_beta_and_in_half(layout):
    from equipoise.norms.kernels.triton import GhostNormTriton

    x, weight, _, grad = inputs((6, 5, 3, 3), layout, torch.float16)
    bare = GhostNormTriton.apply(x, None, None, 2, 3, 1e-5)[0]
    torch.testing.assert_close(bare, grouped_norm_plain(x, None, None, 2, 3, 5, 1e-5)[0], atol=1e-2, rtol=1e-2)
    half = weight.detach().half().requires_grad_()
    scaled = GhostNormTriton.apply(x, half, None, 2, 3, 1e-5)[0]
    d_x, d_half = torch.autograd.grad(scaled, (x, half), grad)
    assert d_x.dtype == d_half.dtype == torch.float16


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(8, 3, 6, 6), (4, 2, 104, 96)])
def test_far_from_zero(shape, layout):
    """Mean 1e4, deviation 2, float32: sums around 0 would leave nothing of the variance."""
    from equipoise.norms.kernels.triton import GhostNormTriton

    x, _, _, _ = inputs(shape, layout, torch.float32, mean=1e4)
    y, _, var = GhostNormTriton.apply(x, None, None, 2, shape[0] // 2, 1e-5)
    exact = x.detach().double().unflatten(0, (-1, 2)).var((1, 3, 4), correction=0)
    torch.testing.assert_close(var.double(), exact, rtol=1e-3, atol=0)
    expected = grouped_norm_plain(x.detach().double(), None, None, 2, shape[0] // 2, shape[1], 1e-5)[0]
    torch.testing.assert_close(y.double(), expected, atol=5e-3, rtol=5e-3)


def test_it_can_be_differentiated_twice():
    from equipoise.norms.kernels.triton import GhostNormTriton

    x, weight, bias, _ = inputs((4, 3, 2, 2), "contiguous", torch.float32)
    seconds = []
    for y in (
        GhostNormTriton.apply(x, weight, bias, 2, 2, 1e-5)[0],
        grouped_norm_plain(x, weight, bias, 2, 2, 3, 1e-5)[0],
    ):
        (first,) = torch.autograd.grad(y.pow(3).sum(), x, create_graph=True)
        seconds.append(torch.autograd.grad(first.square().sum(), (x, weight, bias)))
    for a, b in zip(*seconds, strict=True):
        torch.testing.assert_close(a, b, atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize("parts", [1, 3, 70])
@pytest.mark.parametrize("mean", [0.5, 2e4])
def test_moving_averages(parts, mean):
    from equipoise.norms.kernels.triton_moving import update_moving_triton

    channels, size = 5, 4
    x = torch.randn(parts * size - 1, channels, 6, dtype=torch.float64) + mean
    pieces = x.split(size)
    stats = [torch.stack([p.mean((0, 2)) for p in pieces]), torch.stack([p.var((0, 2), correction=0) for p in pieces])]
    batch = Statistics(*(s.float().to(DEVICE) for s in stats), size, len(x))
    state = [torch.zeros(channels, device=DEVICE) for _ in range(3)]
    set_moving(*state, *(torch.full((channels,), value, device=DEVICE) for value in (mean - 1, 2.0)))
    usual = torch.full((channels,), 3.0, device=DEVICE)
    update_moving_triton(*state, batch, 0.1, usual, 1.25)
    batch_var = x.var((0, 2), correction=0)
    torch.testing.assert_close(usual.double().cpu(), 0.9 * 3 + 0.125 * batch_var, rtol=2e-3, atol=0)
    old_square = 2.0 + (mean - 1) ** 2
    new_mean = 0.9 * (mean - 1) + 0.1 * x.mean((0, 2))
    new_square = 0.9 * old_square + 0.1 * x.square().mean((0, 2))
    torch.testing.assert_close(state[0].double().cpu(), new_mean, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(state[1].double().cpu(), new_square, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(moving_variance(*state).double().cpu(), new_square - new_mean**2, rtol=2e-3, atol=0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(3, 5, 7, 7), (2, 70, 1, 1), (2, 3, 80, 80), (4, 16, 32, 32)])
def test_example_weighing(shape, dtype, layout):
    from equipoise.norms.kernels.triton_weighing import example_weighted_triton

    x, weight, bias, _ = inputs(shape, layout, dtype)
    mean, var = torch.randn(shape[1], device=DEVICE), torch.rand(shape[1], device=DEVICE) + 0.5
    exact = [t.detach().double() for t in (x, mean, var, weight, bias)]
    for alpha in (0.1, 1.0):
        with torch.no_grad():
            y = example_weighted_triton(x, mean, var, weight, bias, alpha, 1e-5)
        expected = example_weighted_norm(*exact, alpha)
        assert y.dtype == dtype and y.is_contiguous(memory_format=LAYOUTS[layout])
        scale = 1.0 if shape[2] > 1 else 300.0  # one position has no variance of its own: alpha 1 divides by sqrt(eps)
        torch.testing.assert_close(y.double(), expected, atol=TOLERANCE[dtype] * scale, rtol=TOLERANCE[dtype])


@on_gpu
@pytest.mark.parametrize("make", [lambda: GhostBatchNorm2d(6, 4), lambda: BatchNorm2d(6), lambda: BatchRenorm2d(6)])
def test_modules_do_on_a_gpu_what_they_do_on_the_cpu(make):
    here, there = make(), make().cuda()
    for n in (16, 16, 7):
        x = torch.randn(n, 6, 9, 9) * 3 + 2
        torch.testing.assert_close(there(x.cuda()).cpu(), here(x), atol=1e-4, rtol=1e-4)
    for name, buffer in here.named_buffers():
        if name != "square_rest":
            torch.testing.assert_close(there.get_buffer(name).cpu(), buffer, atol=1e-4, rtol=1e-4)
    for alpha in (0.0, 0.3):
        set_example_weight(here.eval(), alpha)
        set_example_weight(there.eval(), alpha)
        with torch.no_grad():
            torch.testing.assert_close(there(x.cuda()).cpu(), here(x), atol=1e-4, rtol=1e-4)


@on_gpu
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_step_never_waits_for_the_device_and_can_be_captured(layout, never_waiting):
    x, _, _, grad = inputs((32, 16, 14, 14), layout, torch.bfloat16)
    norm, twin = GhostBatchNorm2d(16, 8).cuda(), GhostBatchNorm2d(16, 8).cuda()

    def step(norm):
        x.grad = norm.weight.grad = norm.bias.grad = None
        y = norm(x)
        y.backward(grad)
        return y

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step(norm)  # compiles
        torch.cuda.synchronize()
        with never_waiting():
            step(norm)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = step(norm)
        captured = x.grad
    graph.replay()
    expected = [step(twin) for _ in range(3)][-1]
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(captured, x.grad)
    torch.testing.assert_close(norm.running_square, twin.running_square)


@on_gpu
def test_memory_is_that_of_batch_norm():
    x = torch.randn(64, 64, 28, 28, device="cuda").bfloat16().requires_grad_()
    grad = torch.randn_like(x)  # dense, as in a network: the gradient of a sum would be copied first

    def peak(norm):
        norm(x).backward(grad)
        x.grad = None
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        y = norm(x)
        held = torch.cuda.memory_allocated() - before
        y.backward(grad)
        x.grad = None
        return held, torch.cuda.max_memory_allocated() - before

    (stock, stock_peak), (ghost, ghost_peak) = peak(nn.BatchNorm2d(64).cuda()), peak(GhostBatchNorm2d(64, 16).cuda())
    assert ghost <= stock + 2**16 and ghost_peak <= stock_peak + 2**18
