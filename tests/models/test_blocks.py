"""Residual blocks against arithmetic written out by hand, with a norm that halves."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models.networks.blocks import BasicBlock, Bottleneck, stack
from equipoise.models.networks.resnet12 import PooledBlock
from equipoise.models.networks.wide_resnet import PreactBlock

SHAPES = pytest.mark.parametrize(("out", "stride"), [(8, 1), (16, 2), (16, 1)])


class Half(nn.Module):
    """Stands for a norm: y = x/2 + 0.1, so that a norm left out, or ReLU before it, shows."""

    def __init__(self, num_features):
        super().__init__()

    def forward(self, x):
        return x / 2 + 0.1


def norm(x):
    return x / 2 + 0.1


def conv(x, weight, stride=1):
    return F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)


def leaky(x):
    return torch.where(x > 0, x, 0.1 * x)


def shortcut(block, x, out, stride):
    return x if (out, stride) == (8, 1) else norm(conv(x, block.shortcut[0].weight, stride))


@pytest.fixture
def x():
    return torch.randn(2, 8, 6, 6, dtype=torch.float64)


@SHAPES
def test_basic_block(x, out, stride):
    block = BasicBlock(8, out, stride, Half).double()
    y = norm(conv(x, block.conv1.weight, stride)).clamp_min(0)
    y = norm(conv(y, block.conv2.weight))
    torch.testing.assert_close(block(x), (y + shortcut(block, x, out, stride)).clamp_min(0))


@SHAPES
def test_bottleneck(x, out, stride):
    block = Bottleneck(8, out, stride, Half).double()
    assert block.conv2.weight.shape == (out // 4, out // 4, 3, 3)
    y = norm(conv(x, block.conv1.weight)).clamp_min(0)
    y = norm(conv(y, block.conv2.weight, stride)).clamp_min(0)
    y = norm(conv(y, block.conv3.weight))
    torch.testing.assert_close(block(x), (y + shortcut(block, x, out, stride)).clamp_min(0))


@SHAPES
def test_preact_block(x, out, stride):
    block = PreactBlock(8, out, stride, Half).double()
    activated = norm(x).clamp_min(0)
    y = norm(conv(activated, block.conv1.weight, stride)).clamp_min(0)
    y = conv(y, block.conv2.weight)
    shortcut = x if (out, stride) == (8, 1) else conv(activated, block.projection.weight, stride)
    torch.testing.assert_close(block(x), y + shortcut)


def test_pooled_block(x):
    block = PooledBlock(8, 12, Half).double()
    block.shortcut[0].weight.data[:6].sub_(1)  # some sums all negative, so that the slope shows in the largest of four
    x = x + 1
    y = leaky(norm(conv(x, block.conv1.weight)))
    y = leaky(norm(conv(y, block.conv2.weight)))
    y = norm(conv(y, block.conv3.weight)) + norm(conv(x, block.shortcut[0].weight))
    assert bool((F.max_pool2d(y, 2) < 0).any())
    largest = leaky(y).unflatten(3, (3, 2)).unflatten(2, (3, 2)).amax((3, 5))
    torch.testing.assert_close(block(x), largest)


def test_a_stage_changes_shape_once(x):
    stage = stack(BasicBlock, 3, 8, 16, 2, Half).double()
    assert [block.conv1.stride for block in stage] == [(2, 2), (1, 1), (1, 1)]
    assert stage(x).shape == (2, 16, 3, 3)


@pytest.mark.parametrize("block", [BasicBlock, Bottleneck, PreactBlock])
def test_hooks_on_the_way_back_are_called(block):
    made, heard = block(8, 8, 1, nn.BatchNorm2d), []
    norms = [module for module in made.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.register_full_backward_hook(lambda *_: heard.append(1))
    made(torch.randn(2, 8, 4, 4, requires_grad=True)).sum().backward()
    assert len(heard) == len(norms)
