"""Convolutions, shortcuts and residual blocks that several networks are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from .._base import NormFactory

Block = Callable[[int, int, int, NormFactory], nn.Module]


def conv3x3(in_channels: int, out_channels: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """No bias: a norm follows."""
    return nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, groups=groups, bias=False)


def conv1x1(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)


def depthwise3x3(channels: int, stride: int = 1) -> nn.Conv2d:
    """Each channel by itself."""
    return conv3x3(channels, channels, stride, groups=channels)


def conv_norm(conv: nn.Conv2d, make_norm: NormFactory) -> nn.Sequential:
    return nn.Sequential(conv, make_norm(conv.out_channels))


def as_one(norm: nn.Module, x: Tensor, shortcut: Tensor | None = None) -> Tensor | None:
    """relu(norm(x) + shortcut) by one kernel, where the norm has one for it (`then_relu`); else None."""
    then_relu: Any = getattr(norm, "then_relu", None)
    return None if then_relu is None else then_relu(x, shortcut)


def norm_relu(norm: nn.Module, x: Tensor, shortcut: Tensor | None = None) -> Tensor:
    """relu(norm(x) + shortcut)."""
    if (fused := as_one(norm, x, shortcut)) is not None:
        return fused
    y = norm(x)
    if shortcut is not None:
        y = y + shortcut
    # what a hook hands on may be a view, which must stay as it is
    return F.relu(y, inplace=y is not x and not norm._backward_hooks and not norm._backward_pre_hooks)


class ConvNormRelu(nn.Sequential):
    """Convolution, norm, ReLU and what is appended; the norm and the ReLU are done as one where that can be."""

    def forward(self, x: Tensor) -> Tensor:
        conv, norm, relu, *rest = self
        x = conv(x)
        fused = as_one(norm, x) if is_plain_relu(relu) else None
        x = relu(norm(x)) if fused is None else fused
        for module in rest:
            x = module(x)
        return x


def is_plain_relu(module: nn.Module) -> bool:
    """Whether calling it does nothing but a ReLU: nobody exchanged it, and nobody listens to it."""
    hooks = module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks
    return type(module) is nn.ReLU and not any(hooks)


def conv_norm_relu(conv: nn.Conv2d, make_norm: NormFactory) -> nn.Sequential:
    return ConvNormRelu(conv, make_norm(conv.out_channels), nn.ReLU(inplace=True))


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
        y = norm_relu(self.norm1, self.conv1(x))
        return norm_relu(self.norm2, self.conv2(y), self.shortcut(x))

    @property
    def last_norm(self) -> nn.Module:
        return self.norm2


class PadBlock(BasicBlock):
    """A basic block whose shortcut has no parameters."""

    make_shortcut = staticmethod(pad_shortcut)


class Bottleneck(nn.Module):
    """relu(shortcut(x) + 1x1, 3x3 and 1x1 convolutions); the 3x3 one strides, and may be in groups.

    Inside it has `inner_share` of the channels that it puts out.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        stride: int,
        make_norm: NormFactory,
        groups: int = 1,
        inner_share: float = 1 / 4,
    ) -> None:
        super().__init__()
        inner = round(out_channels * inner_share)
        self.conv1, self.norm1 = conv1x1(in_channels, inner), make_norm(inner)
        self.conv2, self.norm2 = conv3x3(inner, inner, stride, groups), make_norm(inner)
        self.conv3, self.norm3 = conv1x1(inner, out_channels), make_norm(out_channels)
        self.shortcut = projection(in_channels, out_channels, stride, make_norm)

    def forward(self, x: Tensor) -> Tensor:
        y = norm_relu(self.norm1, self.conv1(x))
        y = norm_relu(self.norm2, self.conv2(y))
        return norm_relu(self.norm3, self.conv3(y), self.shortcut(x))

    @property
    def last_norm(self) -> nn.Module:
        return self.norm3


def zero_last_gamma_(network: nn.Module) -> None:
    """Set the last γ of each residual block to 0: each block starts as its shortcut alone."""
    for block in network.modules():
        if isinstance(block, BasicBlock | Bottleneck):
            gamma = getattr(block.last_norm, "weight", None)
            if gamma is None:
                norm = type(block.last_norm).__name__
                raise ValueError(f"zero_gamma needs norms with a weight γ, which {norm} does not have")
            nn.init.zeros_(gamma)
