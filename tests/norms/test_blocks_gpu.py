"""The kernels of group and batch-group norm on a GPU against the plain formula.

Without a GPU the kernels themselves can be tried, slowly, in Triton's interpreter: TRITON_INTERPRET=1.
"""

import importlib.util
import os

import pytest
import torch

from equipoise.norms import BatchGroupNorm2d, GhostBatchNorm2d, GroupNorm2d, set_example_weight
from equipoise.norms._groups import grouped_norm_plain
from equipoise.norms._moving import set_moving

CUDA = torch.cuda.is_available()
HAS_TRITON = importlib.util.find_spec("triton") is not None
INTERPRETED = HAS_TRITON and os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not (HAS_TRITON and CUDA) and not INTERPRETED, reason="needs a CUDA GPU and Triton"),
]
on_gpu = pytest.mark.skipif(not CUDA, reason="needs a CUDA GPU")
DEVICE = "cuda" if CUDA else "cpu"
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
TOLERANCE = {torch.float32: 5e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("shape", "blocks", "groups"),
    [((6, 8, 5, 5), 3, 2), ((4, 6, 1, 1), 2, 3), ((5, 70, 3, 3), 5, 7), ((2, 4, 80, 80), 1, 2), ((4, 3, 7, 7), 2, 3)],
)
def test_values_and_gradients(shape, blocks, groups, dtype, layout):
    from equipoise.norms import _triton_blocks
    from equipoise.norms._blockwise import BlockNorm

    generator = torch.Generator().manual_seed(1)
    x = (torch.randn(shape, generator=generator) * 2 + 1.5).to(DEVICE, dtype)
    x = x.contiguous(memory_format=LAYOUTS[layout]).requires_grad_()
    weight, bias = (torch.randn(shape[1], generator=generator).to(DEVICE).requires_grad_() for _ in range(2))
    grad = torch.randn(shape, generator=generator).to(DEVICE, dtype)
    y, mean, var = BlockNorm.apply(_triton_blocks, x, weight, bias, blocks, groups, 1e-5)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    expected, *statistics = grouped_norm_plain(*exact, shape[0] // blocks, blocks, groups, 1e-5)
    tolerance = TOLERANCE[dtype]
    assert y.dtype == dtype and y.is_contiguous(memory_format=LAYOUTS[layout])
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)
    for a, b in zip((mean, var), statistics, strict=True):
        torch.testing.assert_close(a.double(), b, atol=1e-4, rtol=1e-4)
    found = torch.autograd.grad(y, (x, weight, bias), grad)
    wanted = torch.autograd.grad(expected, exact, grad.double())
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a.double(), b, atol=tolerance * max(1.0, b.abs().max().item()), rtol=tolerance)


@pytest.mark.parametrize("mean", [0.5, 2e4])
def test_moving_variance(mean):
    from equipoise.norms._triton_moving import moving_variance_triton

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
    for n in (16, 7, 1):
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
