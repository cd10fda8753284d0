"""Convolutions, shortcuts and residual blocks that several networks are made of."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from .._base import NormFactory

Block = Callable[[int, int, int, NormFactory], nn.Module]


def conv3x3(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    """No bias: a norm follows."""
    return nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)


def conv1x1(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)


def conv_norm_relu(conv: nn.Conv2d, make_norm: NormFactory) -> nn.Sequential:
    return nn.Sequential(conv, make_norm(conv.out_channels), nn.ReLU(inplace=True))


def stack(
    block: Block, blocks: int, in_channels: int, out_channels: int, stride: int, make_norm: NormFactory
) -> nn.Sequential:
    """A stage: the first block changes width and resolution, the others keep them."""
    first = block(in_channels, out_channels, stride, make_norm)
    return nn.Sequential(first, *(block(out_channels, out_channels, 1, make_norm) for _ in range(blocks - 1)))


class PadShortcut(nn.Module):
    """Option A of the ResNet paper: every second position, and zeros for the new channels, half on each side."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        before = (out_channels - in_channels) // 2
        self.padding = (0, 0, 0, 0, before, out_channels - in_channels - before)

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, :: self.stride, :: self.stride], self.padding)


def pad_shortcut(in_channels: int, out_channels: int, stride: int, make_norm: NormFactory) -> nn.Module:
    """Option A: no parameters."""
    same = in_channels == out_channels and stride == 1
    return nn.Identity() if same else PadShortcut(in_channels, out_channels, stride)


def projection(in_channels: int, out_channels: int, stride: int, make_norm: NormFactory) -> nn.Module:
    """Option B: a 1x1 convolution and a norm where the shape changes."""
    same = in_channels == out_channels and stride == 1
    return nn.Identity() if same else nn.Sequential(conv1x1(in_channels, out_channels, stride), make_norm(out_channels))


class BasicBlock(nn.Module):
    """relu(shortcut(x) + two 3x3 convolutions)."""

    make_shortcut: Callable[..., nn.Module] = staticmethod(projection)

    def __init__(self, in_channels: int, out_channels: int, stride: int, make_norm: NormFactory) -> None:
        super().__init__()
        self.conv1, self.norm1 = conv3x3(in_channels, out_channels, stride), make_norm(out_channels)
        self.conv2, self.norm2 = conv3x3(out_channels, out_channels), make_norm(out_channels)
        self.shortcut = self.make_shortcut(in_channels, out_channels, stride, make_norm)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        return F.relu(y + self.shortcut(x), inplace=True)


class PadBlock(BasicBlock):
    """A basic block whose shortcut has no parameters."""

    make_shortcut = staticmethod(pad_shortcut)


class Bottleneck(nn.Module):
    """relu(shortcut(x) + 1x1, 3x3 and 1x1 convolutions at a quarter of the width); the 3x3 one strides."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, make_norm: NormFactory) -> None:
        super().__init__()
        inner = out_channels // 4
        self.conv1, self.norm1 = conv1x1(in_channels, inner), make_norm(inner)
        self.conv2, self.norm2 = conv3x3(inner, inner, stride), make_norm(inner)
        self.conv3, self.norm3 = conv1x1(inner, out_channels), make_norm(out_channels)
        self.shortcut = projection(in_channels, out_channels, stride, make_norm)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = F.relu(self.norm2(self.conv2(y)), inplace=True)
        y = self.norm3(self.conv3(y))
        return F.relu(y + self.shortcut(x), inplace=True)
