"""MobileNetV2: residual blocks that are wide inside and narrow between."""

from __future__ import annotations

from torch import Tensor, nn

from ...core import checks, register
from .._base import Network, NormFactory
from .blocks import conv1x1, conv3x3, conv_norm, depthwise3x3
from .head_last import head_last

EXPANSION = 6
LAST_CHANNELS = 1280
# channels, blocks and stride of each group of blocks, stage by stage; the first block of all does not expand
STAGES = (((16, 1, 1), (24, 2, 1)), ((32, 3, 2),), ((64, 4, 2), (96, 3, 1)), ((160, 3, 2), (320, 1, 1)))


def scaled(channels: int, width: float) -> int:
    """`channels` times `width` to the nearest multiple of 8, but no more than 10 % below.

    >>> [scaled(channels, 0.75) for channels in (16, 24, 32)]
    [16, 24, 24]
    """
    exact = channels * width
    nearest = max(8, int(exact + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * exact else nearest + 8


def conv_norm_relu6(conv: nn.Conv2d, make_norm: NormFactory) -> nn.Sequential:
    return conv_norm(conv, make_norm).append(nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    """1x1 convolution to more channels, 3x3 within each, 1x1 to few without ReLU; plus x where the shape stays."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, expansion: int, make_norm: NormFactory
    ) -> None:
        super().__init__()
        inner = in_channels * expansion
        self.parts = nn.Sequential()
        if expansion > 1:
            self.parts.append(conv_norm_relu6(conv1x1(in_channels, inner), make_norm))
        self.parts.append(conv_norm_relu6(depthwise3x3(inner, stride), make_norm))
        self.parts.append(conv_norm(conv1x1(inner, out_channels), make_norm))
        self.same = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        return x + self.parts(x) if self.same else self.parts(x)


@register("mobilenet_v2", kind="model", year=2018, arxiv="1801.04381")
class MobileNetV2(Network):
    """Seventeen inverted residual blocks, for images of 32x32 to 64x64; 2.4 M parameters for 100 classes.

    Args:
        width: how many times as many channels as the paper's plain network has; 0.75 in the bias loss supplement.

    Differs from the paper: the stem and the second group of blocks keep the resolution, so that an image of 32x32 ends
    as 4x4; for ImageNet's strides take ``torchvision/mobilenet_v2``. Weights are drawn from He's distribution. The
    supplement's 2.6 M parameters at width 0.75 are those of a head for 1000 classes; with 100 there are 1.5 M.

    Example:
        >>> MobileNetV2(10, width=0.25).feature_dim
        1280

    Reference: Sandler, Howard, Zhu, Zhmoginov, Chen. MobileNetV2: Inverted Residuals and Linear Bottlenecks. CVPR 2018.
    """

    stages = ("stem", "stage1", "stage2", "stage3", "stage4")

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory, width: float = 1.0) -> None:
        super().__init__()
        self.width = checks.between("width", width, 0.05, 10)
        channels = scaled(32, width)
        self.stem = conv_norm_relu6(conv3x3(in_channels, channels), make_norm)
        stages, expansion = [], 1
        for groups in STAGES:
            stages.append(stage := nn.Sequential())
            for base, blocks, stride in groups:
                for i in range(blocks):
                    out = scaled(base, width)
                    stage.append(InvertedResidual(channels, out, stride if i == 0 else 1, expansion, make_norm))
                    channels, expansion = out, EXPANSION
        self.feature_dim = scaled(LAST_CHANNELS, max(1.0, width))
        stages[-1].append(conv_norm_relu6(conv1x1(channels, self.feature_dim), make_norm))
        self.stage1, self.stage2, self.stage3, self.stage4 = stages
