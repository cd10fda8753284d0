"""Networks taken elsewhere with the batch size left open, and run there; `benchmarks/exports.py` has all of them."""

from pathlib import Path

import pytest
import torch

from ..exporters import needs_onnx
from ..loading import loaded

exports = loaded(Path(__file__).parents[2] / "benchmarks" / "exports.py")
SMALL = "cnn_small(width=4)"
# one of each architecture, small where that can be said
NETWORKS = (
    "cnn_small",
    "cifar_resnet(depth=8)",
    "wide_resnet(depth=10, widen=1)",
    "allcnnc",
    "resnet12",
    "resnet18",
    "resnet50",
)
# their parts that others do not have: concatenation, depthwise convolutions, shuffled channels, cells with two inputs
MORE = (
    "densenet(depth=10, growth=4)",
    "squeezenet",
    "mobilenet_v2(width=0.25)",
    "shufflenet_v2_x0_5",
    "nasnet_a(repeats=2, filters=4)",
)
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's own, about its exporters


def check(module, way):
    if way == "ONNX":
        needs_onnx()
    assert exports.difference(module, way) < exports.TOLERANCE


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network(name):
    check(exports.network(name), "ONNX")  # which goes by way of torch.export


@pytest.mark.parametrize("name", MORE)
def test_more_networks_without_another_runtime(name):
    check(exports.network(name), "torch.export")


@pytest.mark.parametrize("way", ["jit.trace", "compile"])
@pytest.mark.parametrize("name", NETWORKS[:3])
def test_small_networks_in_other_ways(name, way):
    check(exports.network(name), way)


@pytest.mark.parametrize("way", exports.WAYS)
@pytest.mark.parametrize("norm", exports.NORMS)
def test_every_norm(norm, way):
    check(exports.network(SMALL, norm), way)


@pytest.mark.parametrize("way", ["ONNX", "jit.trace"])
@pytest.mark.parametrize("norm", exports.NORMS)
def test_every_norm_that_weighs_examples(norm, way):
    check(exports.network(SMALL, norm, example_weight=0.3), way)


@pytest.mark.parametrize("way", ["ONNX", "jit.trace", "compile"])
@pytest.mark.parametrize("head", exports.HEADS)
def test_every_head(head, way):
    check(exports.network(SMALL, head=head), way)


@pytest.mark.parametrize("norm", exports.NORMS)
@pytest.mark.parametrize("head", exports.HEADS)
def test_every_norm_and_head_can_be_traced_symbolically(norm, head):
    network, x = exports.network(SMALL, norm, head), exports.example(3)
    torch.testing.assert_close(torch.fx.symbolic_trace(network)(x), network(x))
