"""Real networks of timm and torchvision, where they are installed."""

import importlib
import importlib.util

import pytest
import torch
from torch import nn

from equipoise.models import create_model
from equipoise.norms import GhostBatchNorm2d


@pytest.fixture(scope="module", params=["timm", "torchvision"])
def library(request):
    """Its name. Wheels for another build of PyTorch lack two operators of object detection, which nobody needs here."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        missing = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            missing.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return importlib.import_module(request.param).__name__


@pytest.mark.parametrize("name", ["resnet18", "densenet121"])
@pytest.mark.filterwarnings("ignore")  # the libraries' own
def test_a_network_with_its_own_and_with_our_norms(library, name):
    text, x = f"{library}/{name}", torch.randn(4, 3, 64, 64)
    torch.manual_seed(0)
    plain = create_model(text, 5, norm="batch(eps=1e-05, momentum=0.1)", head="linear(prior=None)")
    torch.manual_seed(0)
    ours = create_model(text, 5, norm="ghost(ghost_size=2)", head="cosine")
    out = plain.output(x)
    assert out.logits.shape == (4, 5) and out.feature_map.shape[1] == plain.feature_dim
    norms = [m for m in plain.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    assert sum(isinstance(m, GhostBatchNorm2d) for m in ours.modules()) == len(norms) > 0
    ours(x).sum().backward()
    assert all(p.grad is not None for p in ours.body.parameters())
    convolution = next(name for name, m in plain.named_modules() if isinstance(m, nn.Conv2d))
    assert torch.equal(*(network.get_submodule(convolution).weight for network in (plain, ours)))
    with torch.device("meta"):
        assert {p.shape for p in create_model(text, 5).parameters()} == {p.shape for p in plain.parameters()}
