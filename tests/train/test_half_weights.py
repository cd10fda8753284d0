"""Weights that are cast to bf16 all at once: the numbers of autocast, to the bit."""

import pytest
import torch
from torch import nn

from equipoise.models import create_model
from equipoise.train.half_weights import HalfWeights, Halved

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


def gradients(network, device, at_once):
    images = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1)).to(device)
    network.zero_grad()
    with torch.autocast(device, torch.bfloat16):
        if at_once:
            with HalfWeights(network).in_place():
                assert network.stem[0].weight.dtype == torch.bfloat16
                out = network(images)
        else:
            out = network(images)
    out.float().square().sum().backward()
    return [out.detach(), *(p.grad for p in network.parameters() if p.grad is not None)]


@pytest.mark.parametrize("device", DEVICES)
def test_the_numbers_are_those_of_autocast(device, bf16):
    before, deterministic = torch.backends.cudnn.deterministic, True
    torch.backends.cudnn.deterministic = deterministic
    network = create_model("cifar_resnet(depth=8)", 5).to(device).to(memory_format=torch.channels_last)
    network.stage1[0].conv1.weight.requires_grad_(False)
    plain, at_once = (gradients(network, device, way) for way in (False, True))
    torch.backends.cudnn.deterministic = before
    assert len(plain) == len(at_once) == len(list(network.parameters()))  # the logits, and all but the frozen weight
    for a, b in zip(plain, at_once, strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_afterwards_the_weights_are_there_again_whatever_happened():
    network = create_model("cnn_small", 5)
    before = list(network.parameters())
    with pytest.raises(RuntimeError, match="stop"), HalfWeights(network).in_place():
        raise RuntimeError("stop")
    after = list(network.parameters())
    assert all(a is b for a, b in zip(before, after, strict=True))


def test_other_layers_and_other_types_are_left_alone():
    network = nn.Sequential(nn.Conv2d(2, 2, 1).double(), nn.Linear(2, 2), nn.Conv1d(2, 2, 1))
    with HalfWeights(network).in_place():
        assert [p.dtype for p in network.parameters()][:3:2] == [torch.float64, torch.float32]
    assert HalfWeights(network).convolutions == []


def test_what_has_no_gradient_gets_none():
    one, two = (torch.ones(2, requires_grad=True) for _ in range(2))
    first, _ = Halved.apply(one, two)
    first.float().sum().backward()
    assert two.grad is None and one.grad.dtype == torch.float32 and one.grad.tolist() == [1, 1]
