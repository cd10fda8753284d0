"""DenseNet: every layer sees what all layers before it in its block have made."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...core import checks, register
from .._base import MOST_LAYERS, Network, NormFactory
from .blocks import conv1x1, conv3x3, norm_relu
from .head_last import head_last
from .named import named

MOST_GROWTH = 512


class NormReluConv(nn.Module):
    """What a DenseNet is made of: norm and ReLU come before the convolution."""

    def __init__(self, conv: nn.Conv2d, make_norm: NormFactory) -> None:
        super().__init__()
        self.norm, self.conv = make_norm(conv.in_channels), conv

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(norm_relu(self.norm, x))


class DenseBlock(nn.Module):
    """x ← (x, layer(x)), layer by layer; each adds `growth` channels."""

    def __init__(self, in_channels: int, layers: int, growth: int, bottleneck: bool, make_norm: NormFactory) -> None:
        super().__init__()

        def layer(channels: int) -> nn.Module:
            if not bottleneck:
                return NormReluConv(conv3x3(channels, growth), make_norm)
            narrow = NormReluConv(conv1x1(channels, 4 * growth), make_norm)
            return nn.Sequential(narrow, NormReluConv(conv3x3(4 * growth, growth), make_norm))

        self.layers = nn.ModuleList(layer(in_channels + i * growth) for i in range(layers))
        self.out_channels = in_channels + layers * growth

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


@register("densenet", kind="model", year=2016, arxiv="1608.06993")
class DenseNet(Network):
    """Three dense blocks with 1x1 convolutions and 2x2 means between them, for images of 32x32 to 64x64.

    Args:
        depth: layers with weights: 3 n + 4 for n layers in each block, 6 n + 4 with bottlenecks.
        growth: k, the channels that each layer adds.
        bottleneck: True is DenseNet-BC: a 1x1 convolution to 4 k channels before each 3x3 one, half of the channels
            dropped between blocks, and 2 k channels at the start instead of 16.

    `feature_map` is what the last dense block puts out, before the last norm and ReLU: bias loss measures its variance
    there. `features` are the mean of the map after norm and ReLU.

    Differs from the paper: no dropout, which it uses only without augmentation. The bias loss supplement counts 7 M
    parameters for k = 12 and 27.2 M for k = 24. These are the plain networks of depth 100 (6,979,642 and 27,249,082
    with 10 classes), not DenseNet-BC, which has 769,162 and 3,020,506 at this depth.

    Example:
        >>> DenseNet(10, depth=10, growth=4)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Reference: Huang, Liu, van der Maaten, Weinberger. Densely Connected Convolutional Networks. CVPR 2017.
    """

    @head_last
    def __init__(
        self, in_channels: int, make_norm: NormFactory, depth: int = 100, growth: int = 12, bottleneck: bool = False
    ) -> None:
        super().__init__()
        self.growth = checks.whole("growth", growth, 1, MOST_GROWTH)
        self.bottleneck = checks.truth("bottleneck", bottleneck)
        step = 6 if bottleneck else 3
        self.depth = checks.whole("depth", depth, step + 4, MOST_LAYERS)
        if (depth - 4) % step:
            raise ValueError(f"depth must be {step} n + 4 ({step + 4}, {2 * step + 4}, …), not {depth}")
        layers = (depth - 4) // step

        def block(channels: int) -> DenseBlock:
            return DenseBlock(channels, layers, growth, bottleneck, make_norm)

        def transition_and_block(channels: int) -> tuple[nn.Sequential, int]:
            kept = channels // 2 if bottleneck else channels
            halved = nn.Sequential(NormReluConv(conv1x1(channels, kept), make_norm), nn.AvgPool2d(2))
            return nn.Sequential(halved, dense := block(kept)), dense.out_channels

        start = 2 * growth if bottleneck else 16
        self.stem = conv3x3(in_channels, start)
        self.stage1 = nn.Sequential(first := block(start))
        self.stage2, channels = transition_and_block(first.out_channels)
        self.stage3, self.feature_dim = transition_and_block(channels)
        self.norm = make_norm(self.feature_dim)

    def features_of(self, feature_map: Tensor) -> Tensor:
        return norm_relu(self.norm, feature_map).mean((2, 3))


_PAPER = (2016, "1608.06993")
densenet100_k12 = named(
    "densenet100_k12", DenseNet, "DenseNet of depth 100 and growth 12, 7.0 M parameters.", *_PAPER, growth=12
)
densenet100_k24 = named(
    "densenet100_k24", DenseNet, "DenseNet of depth 100 and growth 24, 27.2 M parameters.", *_PAPER, growth=24
)
densenet_bc100_k12 = named(
    "densenet_bc100_k12",
    DenseNet,
    "DenseNet-BC of depth 100 and growth 12, 0.8 M parameters.",
    *_PAPER,
    bottleneck=True,
)
