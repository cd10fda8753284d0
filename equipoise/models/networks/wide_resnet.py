"""Wide residual networks: few layers, many channels."""

from __future__ import annotations

from torch import Tensor, nn

from ...core import checks, register
from .._base import MOST_CHANNELS, MOST_LAYERS, Network, NormFactory
from .blocks import conv1x1, conv3x3, norm_relu, stack
from .head_last import head_last
from .named import named


class PreactBlock(nn.Module):
    """x + two 3x3 convolutions, norm and ReLU before each; where the shape changes, a projection of the activated x."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, make_norm: NormFactory) -> None:
        super().__init__()
        self.norm1, self.conv1 = make_norm(in_channels), conv3x3(in_channels, out_channels, stride)
        self.norm2, self.conv2 = make_norm(out_channels), conv3x3(out_channels, out_channels)
        same = in_channels == out_channels and stride == 1
        self.projection = None if same else conv1x1(in_channels, out_channels, stride)

    def forward(self, x: Tensor) -> Tensor:
        activated = norm_relu(self.norm1, x)
        y = self.conv2(norm_relu(self.norm2, self.conv1(activated)))
        return y + (x if self.projection is None else self.projection(activated))


@register("wide_resnet", kind="model", year=2016, arxiv="1605.07146")
class WideResNet(Network):
    """Three stages of pre-activation blocks at 16, 32 and 64 times `widen` channels.

    Args:
        depth: layers with weights, 6 n + 4 for n blocks in each stage; 16 for CIFAR-100 in Kornblith et al.
        widen: how many times wider than a CIFAR ResNet; 8 there.

    Differs from the paper: nothing known (without its dropout).

    Example:
        >>> WideResNet(10, depth=10, widen=1)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Reference: Zagoruyko, Komodakis. Wide Residual Networks. BMVC 2016.
    """

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory, depth: int = 16, widen: int = 8) -> None:
        super().__init__()
        self.depth = checks.whole("depth", depth, 10, MOST_LAYERS)
        self.widen = checks.whole("widen", widen, 1, MOST_CHANNELS // 64)
        if (depth - 4) % 6:
            raise ValueError(f"depth must be 6 n + 4 (10, 16, 22, 28, …), not {depth}")
        blocks, width = (depth - 4) // 6, 16 * widen
        self.feature_dim = 4 * width
        self.stem = conv3x3(in_channels, 16)
        self.stage1 = stack(PreactBlock, blocks, 16, width, 1, make_norm)
        self.stage2 = stack(PreactBlock, blocks, width, 2 * width, 2, make_norm)
        self.stage3 = stack(PreactBlock, blocks, 2 * width, 4 * width, 2, make_norm)
        self.stage3.extend([make_norm(self.feature_dim), nn.ReLU()])  # what the blocks leave is not activated yet


wrn_16_8 = named(
    "wrn_16_8",
    WideResNet,
    "The wide ResNet of depth 16, eight times as wide; 11 M parameters.",
    2016,
    "1605.07146",
    depth=16,
    widen=8,
)
