"""ShuffleNetV2: half of the channels pass by, then both halves are shuffled."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...core import checks, register
from .._base import Network, NormFactory
from .blocks import conv1x1, conv3x3, conv_norm, conv_norm_relu, depthwise3x3
from .head_last import head_last
from .named import named

# width -> channels of the three stages and of the last convolution
CHANNELS = {
    0.5: (48, 96, 192, 1024),
    1.0: (116, 232, 464, 1024),
    1.5: (176, 352, 704, 1024),
    2.0: (244, 488, 976, 2048),
}


def shuffled(left: Tensor, right: Tensor) -> Tensor:
    """Both halves with their channels in turn: left 0, right 0, left 1, …"""
    return torch.stack([left, right], 2).flatten(1, 2)


class Unit(nn.Module):
    """Half of the channels pass by, the other half go through 1x1, depthwise 3x3 and 1x1 convolutions.

    The first unit of a stage has both halves see all channels, and halves the resolution of both.
    """

    def __init__(self, in_channels: int, out_channels: int, make_norm: NormFactory) -> None:
        super().__init__()
        self.first = in_channels != out_channels
        half, stride = out_channels // 2, 2 if self.first else 1
        seen = in_channels if self.first else half
        self.branch = nn.Sequential(
            conv_norm_relu(conv1x1(seen, half), make_norm),
            conv_norm(depthwise3x3(half, stride), make_norm),
            conv_norm_relu(conv1x1(half, half), make_norm),
        )
        self.passed: nn.Module = nn.Identity()
        if self.first:
            down = conv_norm(depthwise3x3(seen, stride), make_norm)
            self.passed = nn.Sequential(down, conv_norm_relu(conv1x1(seen, half), make_norm))

    def forward(self, x: Tensor) -> Tensor:
        left, right = (x, x) if self.first else x.chunk(2, 1)
        return shuffled(self.passed(left), self.branch(right))


@register("shufflenet_v2", kind="model", year=2018, arxiv="1807.11164")
class ShuffleNetV2(Network):
    """Three stages of 4, 8 and 4 units and a last 1x1 convolution, for images of 32x32 to 64x64.

    Args:
        width: 0.5, 1.0, 1.5 or 2.0, as in the paper.

    `feature_map` is what the last 1x1 convolution puts out, after its norm and ReLU.

    Differs from the paper: the stem keeps the resolution, so that an image of 32x32 ends as 4x4; for ImageNet's stem
    take ``torchvision/shufflenet_v2_x0_5``. The bias loss supplement's 1.4 M parameters at width 0.5 are those of a
    head for 1000 classes; with 100 there are 0.44 M.

    Example:
        >>> ShuffleNetV2(10, width=0.5).feature_dim
        1024

    Reference: Ma, Zhang, Zheng, Sun. ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture Design. ECCV
    2018.
    """

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory, width: float = 1.0) -> None:
        super().__init__()
        if checks.number("width", width) not in CHANNELS:
            raise ValueError(f"width must be one of {', '.join(map(str, CHANNELS))}, not {width}")
        self.width = width
        first, second, third, self.feature_dim = CHANNELS[width]

        def stage(units: int, channels: int, out_channels: int) -> nn.Sequential:
            rest = (Unit(out_channels, out_channels, make_norm) for _ in range(units - 1))
            return nn.Sequential(Unit(channels, out_channels, make_norm), *rest)

        self.stem = conv_norm_relu(conv3x3(in_channels, 24), make_norm)
        self.stage1 = stage(4, 24, first)
        self.stage2 = stage(8, first, second)
        self.stage3 = stage(4, second, third).append(conv_norm_relu(conv1x1(third, self.feature_dim), make_norm))


shufflenet_v2_x0_5 = named(
    "shufflenet_v2_x0_5",
    ShuffleNetV2,
    "ShuffleNetV2 at half width, 0.44 M parameters for 100 classes.",
    2018,
    "1807.11164",
    width=0.5,
)
