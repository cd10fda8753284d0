"""Compiled, traced and exported, a norm in inference takes batches of any size, and gives the same numbers."""

import copy
import warnings

import pytest
import torch
from torch import nn

from equipoise.norms import (
    BatchGroupNorm2d,
    BatchNorm2d,
    BatchRenorm2d,
    GhostBatchNorm2d,
    GroupNorm2d,
    set_example_weight,
)

from ..exporters import needs_onnx

SHAPES = [(4, 6, 3, 5), (7, 6, 3, 5)]  # what is traced, and what comes


class EachNorm(nn.Module):
    """What every norm makes of one input."""

    def __init__(self):
        super().__init__()
        ours = BatchNorm2d(6), GhostBatchNorm2d(6, 4), BatchGroupNorm2d(6, 3), GroupNorm2d(6, 3), BatchRenorm2d(6)
        self.norms = nn.ModuleList([*ours, nn.BatchNorm2d(6)])
        with torch.no_grad():
            for norm in self.norms:
                norm.weight.uniform_(0.5, 1.5)
                norm.bias.normal_()

    def forward(self, x):
        return tuple(norm(x) for norm in self.norms)


@pytest.fixture(params=[0.0, 0.3])
def norms(request):
    made = EachNorm()
    made(torch.randn(8, 6, 3, 5) * 2 + 1)
    set_example_weight(made, request.param)
    torch._dynamo.reset()
    return made.eval()


def agrees(found, norms, atol=1e-6):
    for shape in reversed(SHAPES):
        x = torch.randn(shape)
        with torch.no_grad():
            torch.testing.assert_close(tuple(found(x)), norms(x), atol=atol, rtol=1e-5)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_with_dynamic_sizes(norms, backend):
    compiled = torch.compile(norms, dynamic=True, fullgraph=True, backend=backend)
    compiled(torch.randn(SHAPES[0]))
    agrees(compiled, norms)


def test_training_compiled_with_dynamic_sizes():
    torch._dynamo.reset()
    norms = EachNorm()
    twin = copy.deepcopy(norms)
    compiled = torch.compile(norms, dynamic=True, fullgraph=True, backend="aot_eager")
    for n in (8, 12):
        x = torch.randn(n, 6, 3, 5)
        torch.testing.assert_close(compiled(x), twin(x), atol=1e-5, rtol=1e-5)
    for name, buffer in twin.named_buffers():
        torch.testing.assert_close(norms.get_buffer(name), buffer, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("strict", [True, False])
def test_torch_export(norms, strict):
    dynamic = ({0: torch.export.Dim("n", max=2**31)},)
    exported = torch.export.export(norms, (torch.randn(SHAPES[0]),), dynamic_shapes=dynamic, strict=strict)
    agrees(exported.module(), norms)


@pytest.mark.parametrize("grad", [True, False])
def test_jit_trace(norms, grad):
    """Nothing of the traced batch is baked in: neither its size nor the numbers that a kernel beside PyTorch gave."""
    with warnings.catch_warnings(), torch.set_grad_enabled(grad):
        warnings.simplefilter("ignore", DeprecationWarning)
        agrees(torch.jit.trace(norms, torch.randn(SHAPES[0])), norms)


def test_fx_keeps_each_as_one_layer(norms):
    traced = torch.fx.symbolic_trace(norms)
    assert [n.target for n in traced.graph.nodes if n.op == "call_module"] == [f"norms.{i}" for i in range(6)]
    agrees(traced, norms)


@pytest.mark.parametrize("dynamo", [True, False])
def test_onnx(norms, dynamo, tmp_path):
    needs_onnx(exporter=dynamo)
    import onnxruntime

    file, x = tmp_path / "norms.onnx", torch.randn(SHAPES[0])
    if dynamo:
        sizes = {"dynamic_shapes": ({0: torch.export.Dim("n", max=2**31)},)}
    else:
        sizes = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own; what concerns the traced code stays an error
        warnings.simplefilter("error", torch.jit.TracerWarning)
        torch.onnx.export(norms, (x,), str(file), dynamo=dynamo, **sizes)
    session = onnxruntime.InferenceSession(str(file))
    name = session.get_inputs()[0].name
    agrees(lambda x: map(torch.from_numpy, session.run(None, {name: x.numpy()})), norms, atol=1e-5)
