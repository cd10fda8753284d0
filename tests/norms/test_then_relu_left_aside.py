"""A norm, a shortcut and a ReLU as one on the CPU: when they are not, because the kernels do not take what came or
somebody would miss a step."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from equipoise import native
from equipoise.models.networks.blocks import norm_relu
from equipoise.norms import BatchNorm2d

from .then_relu import (
    NEEDS_C,
    assert_same_bits,
    every_norm,
    make_norm,
    maps,
    of_single_channels,
    step_by_step,
)

pytestmark = NEEDS_C


@every_norm
def test_other_types(name):
    """Whatever the default is, float32 is served; other numbers go step by step."""
    x, shortcut, _ = maps((6, 5, 4, 4), torch.channels_last, with_shortcut=True)
    norm = make_norm(name, 5, ghost=2)
    wanted = step_by_step(make_norm(name, 5, ghost=2), x, shortcut)
    torch.set_default_dtype(torch.float64)
    try:
        assert_same_bits([norm.then_relu(x, shortcut)], [wanted])
    finally:
        torch.set_default_dtype(torch.float32)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        other = make_norm(name, 5, ghost=2).to(dtype)
        assert norm.then_relu(x.to(dtype)) is None and norm.then_relu(x, shortcut.to(dtype)) is None
        assert other.then_relu(x.to(dtype)) is None and other.then_relu(x) is None
        y = norm_relu(other, x.to(dtype), shortcut.to(dtype))
        assert y.dtype is dtype
        torch.testing.assert_close(y.float(), wanted, atol=0.1, rtol=0.1)


@every_norm
def test_maps_that_do_not_lie_alike_go_step_by_step(name):
    gapped = torch.randn(6, 4, 5, 10)[..., ::2]
    x, last = gapped.contiguous(), gapped.contiguous(memory_format=torch.channels_last)
    wide = torch.randn(6, 8, 5, 5)[:, :4]
    not_served = ((gapped, None), (wide, None), (x, gapped), (x, last), (last, x), (x, x[:1]), (x, x[0]), (last, wide))
    for pair in not_served:
        norm = make_norm(name, 4, ghost=2)
        assert norm.then_relu(*pair) is None
        wanted = step_by_step(make_norm(name, 4, ghost=2), *pair)
        torch.testing.assert_close(norm_relu(norm, *pair), wanted)
    for pair in ((x, x), (last, last), (x, None), (last, None)):
        assert norm.then_relu(*pair) is not None


@every_norm
@pytest.mark.parametrize("shape", [(8, 4), (8, 4, 6), (4, 4, 3, 2, 5)], ids=str)
def test_maps_of_other_dimensions(name, shape):
    x, shortcut = torch.randn(shape), torch.randn(shape)
    norms = [make_norm(name, 4, ghost=2) for _ in range(2)]
    assert_same_bits([norms[0].then_relu(x, shortcut)], [step_by_step(norms[1], x, shortcut)])


@of_single_channels
def test_what_forward_refuses_is_left_to_it(name):
    norm = make_norm(name, 4)
    for x in (torch.randn(3, 5, 2, 2), torch.randn(1, 4, 1, 1), torch.randn(4), torch.randn(3, 4, 2, 2).long()):
        assert norm.then_relu(x) is None
        with pytest.raises(ValueError):
            norm_relu(norm, x)
    assert norm.then_relu(torch.empty(0, 4, 2, 2)) is None
    assert norm.num_batches_tracked == 0


@every_norm
def test_whoever_listens_to_the_norm_is_told(name):
    x, heard = torch.randn(4, 3, 2, 2), []
    norm = make_norm(name, 3)
    assert norm.then_relu(x) is not None
    for register in (
        norm.register_forward_hook,
        norm.register_forward_pre_hook,
        norm.register_full_backward_hook,
        nn.modules.module.register_module_forward_hook,
        nn.modules.module.register_module_forward_pre_hook,
    ):
        handle = register(lambda *_: heard.append(1))
        assert norm.then_relu(x) is None
        step_by_step(norm, x.clone().requires_grad_()).sum().backward()
        assert heard.pop() and not heard
        handle.remove()
        assert norm.then_relu(x) is not None
    norm.forward = lambda x: x
    assert norm.then_relu(x) is None

    norm = make_norm(name, 3)

    class Own(type(norm)):
        def forward(self, x):
            return super().forward(x)

    norm.__class__ = Own
    assert norm.then_relu(x) is None


@every_norm
def test_inference_goes_step_by_step(name):
    x, norm = torch.randn(4, 3, 2, 2), make_norm(name, 3)
    norm.then_relu(x)
    before = [b.clone() for b in norm.buffers()]
    assert norm.eval().then_relu(x) is None and norm.then_relu(x, x) is None
    assert_same_bits(norm.buffers(), before)
    with torch.inference_mode():
        assert norm.train().then_relu(x) is not None  # it is training that counts


@every_norm
def test_what_is_traced_or_mapped_goes_step_by_step(name):
    x, norm, seen = torch.randn(4, 3, 2, 2), make_norm(name, 3, track_running_stats=False), []

    def asked(x):
        seen.append(norm.then_relu(x))
        return norm_relu(norm, x)

    wanted = step_by_step(norm, x)
    torch.testing.assert_close(torch.func.vmap(asked)(torch.stack([x, x])), torch.stack([wanted, wanted]))
    torch.func.grad(lambda x: asked(x).sum())(x)
    torch.func.jvp(asked, (x,), (x,))
    make_fx(asked)(x)
    with FakeTensorMode(allow_non_fake_inputs=True):
        asked(torch.empty(4, 3, 2, 2))
    assert len(seen) >= 5 and not any(y is not None for y in seen)
    compiled = torch.compile(asked, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), wanted)
    assert seen[-1] is None
    assert norm.then_relu(x) is not None


def test_without_kernels_it_goes_step_by_step(monkeypatch):
    x, norm = torch.randn(4, 3, 2, 2), BatchNorm2d(3)
    monkeypatch.setattr(native, "library", lambda: None)
    assert norm.then_relu(x) is None and norm.num_batches_tracked == 0
