"""Networks from texts."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from equipoise.core import EquipoiseError
from equipoise.models import CosineHead, LinearHead, Network, create_model


def test_defaults():
    network = create_model("cnn_small", 10)
    assert isinstance(network, Network) and isinstance(network.head, LinearHead)
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(norms) == 4 and all((m.eps, m.momentum) == (1e-5, 0.1) for m in norms)


def test_norm_text_and_none_are_the_same_batch_norm():
    torch.manual_seed(1)
    by_default = create_model("cnn_small", 10)
    torch.manual_seed(1)
    by_name = create_model("cnn_small", 10, norm="batch", head="linear")
    assert repr(by_default) == repr(by_name)
    assert all(torch.equal(a, b) for a, b in zip(by_default.parameters(), by_name.parameters(), strict=True))


def test_texts_carry_parameters():
    network = create_model("cnn_small(width=4)", 5, head="cosine(tau=1.0, bias=False)", in_channels=1)
    assert network.feature_dim == 16 and isinstance(network.head, CosineHead)
    assert network.head.tau == 1.0 and network.head.bias is None and network.head.num_classes == 5
    assert network(torch.randn(2, 1, 8, 8)).shape == (2, 5)
    assert create_model("resnet32", 5, head="linear(prior='others')").head.no_decay == ("bias",)


def test_callables():
    network = create_model(
        "cnn_small", 5, norm=lambda n: nn.GroupNorm(4, n), head=lambda d, c: nn.Linear(d, c, bias=False)
    )
    assert sum(isinstance(m, nn.GroupNorm) for m in network.modules()) == 4
    assert network.head.bias is None and network(torch.randn(2, 3, 8, 8)).shape == (2, 5)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("resnt32", {}, "no model is named 'resnt32'. Did you mean 'resnet32'"),
        ("resnet32", {"head": "cosin"}, "no head is named 'cosin'. Did you mean 'cosine'"),
        ("resnet32", {"norm": "batsch"}, "no norm is named 'batsch'. Did you mean 'batch'"),
        ("resnet32", {"head": "cosine(tau=-1)"}, "tau must be above 0"),
        ("cnn_small(wide=3)", {}, "has no parameter 'wide'"),
        ("cnn_small", {"head": "causal(heads=7)"}, "heads must divide"),
    ],
)
def test_mistakes(name, options, message):
    with pytest.raises(EquipoiseError, match=message):
        create_model(name, 10, **options)


def test_needs_torch_and_numpy_alone():
    heavy = ("scipy", "sklearn", "typer", "rich", "plotly", "pandas", "torchvision", "timm", "equipoise.norms")
    code = f"import sys, equipoise.models; print([m for m in {heavy!r} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
