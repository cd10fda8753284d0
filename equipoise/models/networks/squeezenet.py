"""SqueezeNet: few channels between convolutions, and a convolution for a head."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...core import checks, register
from .._base import Network, NormFactory
from .blocks import conv1x1, conv3x3, conv_norm_relu
from .head_last import head_last


class Fire(nn.Module):
    """An eighth as many channels by a 1x1 convolution, then half of the output by a 1x1, half by a 3x3 convolution."""

    def __init__(self, in_channels: int, out_channels: int, bypass: bool, make_norm: NormFactory) -> None:
        super().__init__()
        narrow, half = out_channels // 8, out_channels // 2
        self.squeeze = conv_norm_relu(conv1x1(in_channels, narrow), make_norm)
        self.expand1x1 = conv_norm_relu(conv1x1(narrow, half), make_norm)
        self.expand3x3 = conv_norm_relu(conv3x3(narrow, half), make_norm)
        self.bypass = bypass and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        squeezed = self.squeeze(x)
        y = torch.cat([self.expand1x1(squeezed), self.expand3x3(squeezed)], 1)
        return x + y if self.bypass else y


@register("squeezenet", kind="model", year=2016, arxiv="1602.07360")
class SqueezeNet(Network):
    """Eight fire modules at 128 to 512 channels, for images of 32x32 to 64x64; 0.8 M parameters for 100 classes.

    Args:
        bypass: add its input to what a fire module puts out where both have the same shape (the paper's simple bypass).

    Differs from the paper: the first convolution is 3x3 and keeps the resolution, pools are 2x2, a norm follows each
    convolution, and there is no dropout, as in public code for CIFAR-100 (weiaicunzai/pytorch-cifar100), which has
    `bypass` but for the last fire module. The mean over positions comes before the last 1x1 convolution, which is
    thereby a linear head on 512 features; in the paper a ReLU is between the two. The bias loss supplement's 1.25 M
    parameters are those of a head for 1000 classes.

    Example:
        >>> SqueezeNet(10).feature_dim
        512

    Reference: Iandola, Han, Moskewicz, Ashraf, Dally, Keutzer. SqueezeNet: AlexNet-level accuracy with 50x fewer
    parameters and <0.5MB model size. 2016.
    """

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory, bypass: bool = False) -> None:
        super().__init__()
        self.bypass = checks.truth("bypass", bypass)

        def pooled_fires(channels: int, *widths: int) -> nn.Sequential:
            stage = nn.Sequential(nn.MaxPool2d(2))
            for width in widths:
                stage.append(Fire(channels, width, bypass, make_norm))
                channels = width
            return stage

        self.stem = conv_norm_relu(conv3x3(in_channels, 96), make_norm)
        self.stage1 = pooled_fires(96, 128, 128, 256)
        self.stage2 = pooled_fires(256, 256, 384, 384, 512)
        self.stage3 = pooled_fires(512, 512)
        self.feature_dim = 512
