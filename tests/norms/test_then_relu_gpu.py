"""A norm, a shortcut and a ReLU as one: the kernels against the formula, and networks against the step-by-step way.

Without a GPU the kernels themselves can be tried, slowly, in Triton's interpreter: TRITON_INTERPRET=1.
"""

import pytest
import torch
from torch import nn

from equipoise.models import create_model
from equipoise.norms import BatchNorm2d
from equipoise.norms._then_relu import ThenRelu
from equipoise.norms.kernels.groups import Statistics, fit_groups, grouped_norm_plain, split_examples

from .triton import DEVICE, NEEDS_TRITON, TOLERANCE, assert_same_gradients, on_gpu

pytestmark = NEEDS_TRITON
# (N, C, H, W) and examples of a block: odd channels, a small last block, single examples, the whole batch
CASES = [((8, 3, 4, 4), 2), ((9, 5, 3, 3), 4), ((5, 70, 2, 2), 16), ((6, 3, 7, 7), 1), ((33, 40, 12, 12), 33)]


def tensors(shape, dtype):
    generator = torch.Generator().manual_seed(1)
    x, shortcut, grad = (
        (torch.randn(shape, generator=generator) * 2 + mean)
        .to(DEVICE, dtype)
        .contiguous(memory_format=torch.channels_last)
        for mean in (1.5, 0.0, 0.0)
    )
    weight, bias = (torch.randn(shape[1], generator=generator).to(DEVICE).requires_grad_() for _ in range(2))
    return x.requires_grad_(), shortcut.requires_grad_(), weight, bias, grad


def norm_relu(x, shortcut, weight, bias, size, blocks, groups):
    """By the kernels: y, and the statistics of the batch."""
    if groups == x.shape[1]:
        from equipoise.norms.kernels.triton import NormReluTriton

        y, mean, var = NormReluTriton.apply(x, shortcut, weight, bias, size, blocks, 1e-5)
        return y, Statistics(mean, var, size, len(x))
    from equipoise.norms.kernels.triton_blocks import BlockNormTriton

    y, mean, var = BlockNormTriton.apply(x, weight, bias, size, blocks, groups, 1e-5, True, shortcut)
    return y, Statistics(mean, var, 1, len(x))


@pytest.mark.parametrize("with_shortcut", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("groups", [None, 1, 5])
@pytest.mark.parametrize(("shape", "examples"), CASES)
def test_values_gradients_and_statistics(shape, examples, groups, dtype, with_shortcut):
    groups = shape[1] if groups is None else fit_groups(shape[1], groups)
    x, shortcut, weight, bias, grad = tensors(shape, dtype)
    geometry = *split_examples(shape[0], examples, x[0].numel() // groups), groups
    given = (x, shortcut, weight, bias) if with_shortcut else (x, weight, bias)
    y, batch = norm_relu(x, shortcut if with_shortcut else None, weight, bias, *geometry)
    exact = [t.detach().double().requires_grad_() for t in given]
    inner, exact_mean, exact_var = grouped_norm_plain(exact[0], *exact[-2:], *geometry, 1e-5)
    expected = (inner + exact[1] if with_shortcut else inner).relu()
    assert y.dtype == dtype and y.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(y.double(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    mean, var = batch.merged()
    torch.testing.assert_close(mean.double(), exact_mean, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(var.double(), exact_var, atol=1e-5, rtol=1e-5)
    assert_same_gradients(y, given, expected, exact, grad, TOLERANCE[dtype])


@pytest.mark.parametrize("with_shortcut", [False, True])
@pytest.mark.parametrize("groups", [6, 3])
def test_without_gamma_and_beta(groups, with_shortcut):
    x, shortcut, _, _, grad = tensors((6, 6, 3, 3), torch.float32)
    given = (x, shortcut) if with_shortcut else (x,)
    y, _ = norm_relu(x, shortcut if with_shortcut else None, None, None, 6, 1, groups)
    exact = [t.detach().double().requires_grad_() for t in given]
    inner = grouped_norm_plain(exact[0], None, None, 6, 1, groups, 1e-5)[0]
    assert_same_gradients(y, given, (inner + exact[1] if with_shortcut else inner).relu(), exact, grad, 5e-5)


@pytest.mark.parametrize("with_shortcut", [False, True])
@pytest.mark.parametrize("groups", [4, 2])
def test_it_can_be_differentiated_twice(groups, with_shortcut):
    x, shortcut, weight, bias, _ = tensors((4, 4, 2, 2), torch.float32)
    shortcut = shortcut if with_shortcut else None
    inner = grouped_norm_plain(x, weight, bias, 2, 2, groups, 1e-5)[0]
    seconds = []
    for y in (
        norm_relu(x, shortcut, weight, bias, 2, 2, groups)[0],
        (inner if shortcut is None else inner + shortcut).relu(),
    ):
        (first,) = torch.autograd.grad(y.pow(3).sum(), x, create_graph=True)
        seconds.append(torch.autograd.grad(first.square().sum(), (x, weight, bias)))
    for a, b in zip(*seconds, strict=True):
        torch.testing.assert_close(a, b, atol=1e-2, rtol=1e-3)


@on_gpu
@pytest.mark.parametrize("norm", ["batch", "ghost(ghost_size=5)", "group", "batch_group", "batch_renorm(warmup=0)"])
@pytest.mark.parametrize("model", ["resnet18", "wide_resnet(depth=10, widen=2)", "allcnnc", "densenet(depth=10)"])
def test_networks_do_what_they_do_step_by_step(model, norm, monkeypatch):
    """Outputs, gradients and moving averages in float32, where the two ways differ by rounding alone."""
    torch.backends.cudnn.allow_tf32, before = False, torch.backends.cudnn.allow_tf32
    images = torch.randn(16, 3, 32, 32, device="cuda").contiguous(memory_format=torch.channels_last)
    found, calls = [], []
    fused = ThenRelu.then_relu
    for way in ("fused", "apart"):
        torch.manual_seed(0)
        network = create_model(model, 10, norm=norm).cuda().to(memory_format=torch.channels_last)

        def then_relu(self, x, shortcut=None, way=way):
            calls.append(way)
            return fused(self, x, shortcut) if way == "fused" else None

        monkeypatch.setattr(ThenRelu, "then_relu", then_relu)
        logits = network(images)
        logits.square().sum().backward()
        found.append((logits.detach(), [p.grad for p in network.parameters()], dict(network.named_buffers())))
    torch.backends.cudnn.allow_tf32 = before
    assert calls.count("fused") == calls.count("apart") > 5
    torch.testing.assert_close(found[0][0], found[1][0], atol=1e-3, rtol=1e-3)
    for ours, theirs in zip(found[0][1], found[1][1], strict=True):
        assert (ours - theirs).norm() <= 5e-3 * theirs.norm() + 1e-4
    for name, value in found[1][2].items():
        if name.rpartition(".")[2] != "square_rest":
            torch.testing.assert_close(found[0][2][name], value, atol=1e-3, rtol=1e-3)


@on_gpu
def test_whoever_listens_to_the_norm_is_told():
    norm = BatchNorm2d(4).cuda()
    x = torch.randn(2, 4, 3, 3, device="cuda").contiguous(memory_format=torch.channels_last)
    assert norm.then_relu(x) is not None
    assert norm.then_relu(x.contiguous()) is None and norm.then_relu(x, x.double()) is None
    handle = norm.register_forward_hook(lambda *_: None)
    assert norm.then_relu(x) is None
    handle.remove()
    with torch.nn.modules.module.register_module_forward_hook(lambda *_: None):
        assert norm.then_relu(x) is None
    norm.forward = lambda x: x
    assert norm.then_relu(x) is None
    assert BatchNorm2d(4).cuda().eval().then_relu(x) is None
    assert not hasattr(nn.BatchNorm2d(4), "then_relu")
