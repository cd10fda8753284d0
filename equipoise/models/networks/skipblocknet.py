"""SkipblockNet: MobileNetV3's blocks, with what the first block saw led on to the middle of the network."""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from ...core import checks, register
from .._base import Network, NormFactory
from .blocks import conv1x1, conv3x3, conv_norm, conv_norm_relu
from .head_last import head_last
from .mobilenet_v2 import scaled

STEM_CHANNELS = 16
FEATURES = 1280


class Layout(NamedTuple):
    """A block as the table of layers has it."""

    kernel: int
    expansion: float
    channels: int
    weigh: bool = False
    hard_swish: bool = True
    stride: int = 1


STAGES = (
    (
        Layout(3, 4, 24, hard_swish=False, stride=2),
        Layout(3, 3, 24, hard_swish=False),
        Layout(5, 3, 40, weigh=True, hard_swish=False, stride=2),
        Layout(5, 3, 40, weigh=True, hard_swish=False),
        Layout(5, 6, 40, weigh=True),
    ),
    (Layout(3, 6, 80, stride=2), Layout(3, 2.5, 80), Layout(3, 2.3, 80), Layout(3, 2.3, 80)),
    (Layout(3, 6, 112, weigh=True), Layout(3, 6, 112, weigh=True)),
    (Layout(5, 6, 160, weigh=True, stride=2), Layout(5, 6, 160, weigh=True), Layout(5, 6, 160, weigh=True)),
)
# skip blocks: kernel, expansion; the first is added to what stage 1 puts out, the second to that of stage 2
SKIPS = ((5, 6), (3, 2.3))


def depthwise(channels: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels, channels, kernel, stride, padding=kernel // 2, groups=channels, bias=False)


class WeighedChannels(nn.Module):
    """Squeeze and excitation: each channel times a number from 0 to 1 that the means of all channels decide."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = scaled(channels // 4, 1.0)
        self.squeeze, self.excite = nn.Linear(channels, inner), nn.Linear(inner, channels)

    def forward(self, x: Tensor) -> Tensor:
        weights = F.hardsigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))
        return x * weights[:, :, None, None]


class MobileBlock(nn.Module):
    """MobileNetV3's: 1x1 to more channels, a convolution within each, 1x1 without ReLU; plus x where it fits."""

    def __init__(self, in_channels: int, out_channels: int, layout: Layout, make_norm: NormFactory) -> None:
        super().__init__()
        self.inner = inner = scaled(in_channels, layout.expansion)

        def act() -> nn.Module:
            return nn.Hardswish(inplace=True) if layout.hard_swish else nn.ReLU(inplace=True)

        self.parts = nn.Sequential(
            conv_norm(conv1x1(in_channels, inner), make_norm).append(act()),
            conv_norm(depthwise(inner, layout.kernel, layout.stride), make_norm).append(act()),
            *([WeighedChannels(inner)] if layout.weigh else []),
            conv_norm(conv1x1(inner, out_channels), make_norm),
        )
        self.same = layout.stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        return x + self.parts(x) if self.same else self.parts(x)


class SkipBlock(nn.Module):
    """A map brought to the size of another by means, then 1x1, depthwise and 1x1 convolutions; no ReLU at the end."""

    def __init__(self, in_channels: int, inner: int, out_channels: int, kernel: int, make_norm: NormFactory) -> None:
        super().__init__()
        self.parts = nn.Sequential(
            conv_norm_relu(conv1x1(in_channels, inner), make_norm),
            conv_norm_relu(depthwise(inner, kernel), make_norm),
            conv_norm(conv1x1(inner, out_channels), make_norm),
        )

    def forward(self, x: Tensor, like: Tensor) -> Tensor:
        height, width = like.shape[-2:]
        skipped: Tensor = self.parts(F.adaptive_avg_pool2d(x, (height, width)))
        return skipped


@register("skipblocknet", kind="model", year=2021, arxiv="2107.11170")
class SkipblockNet(Network):
    """Fifteen blocks of MobileNetV3 and two skip blocks from the first of them, for 224x224; 5.5 M parameters.

    Args:
        width: how many times as many channels; 1 is SkipblockNet-M.

    A skip block averages the first block's map down to the size of a later one, convolves it three times and is added
    there: after `stage1` and after `stage2`, behind what a mixing at these sites does. `feature_map` is the last
    convolution's, of 960 channels; `features` are its mean through one more linear layer and hard swish.

    Differs from the paper: we have its supplement alone, so that the table of layers is the released code's, and the
    number of parameters is held against a sum over that table. Dropout of 20 % before the last layer is the head's:
    ``head = "dropout(keep=0.8)"``. Weights are drawn from He's distribution. Any size of image works: a skip block
    averages to the size of the map it is added to, 28x28 and 14x14 for images of 224x224 as in the code.

    Example:
        >>> SkipblockNet(10, width=0.5).feature_dim
        1280

    Reference: Abrahamyan, Ziatchin, Chen, Deligiannis. Bias Loss for Mobile Neural Networks. ICCV 2021.
    """

    stages = ("stem", "stage1", "stage2", "stage3", "stage4")

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory, width: float = 1.0) -> None:
        super().__init__()
        self.width = checks.between("width", width, 0.05, 10)
        start = channels = scaled(STEM_CHANNELS, width)

        def swished(conv: nn.Conv2d) -> nn.Sequential:
            return conv_norm(conv, make_norm).append(nn.Hardswish(inplace=True))

        first = MobileBlock(start, start, Layout(3, 1, STEM_CHANNELS), make_norm)
        self.stem = nn.Sequential(swished(conv3x3(in_channels, start, stride=2)), first)
        stages, ends = [], []
        for layouts in STAGES:
            stages.append(stage := nn.Sequential())
            for layout in layouts:
                stage.append(block := MobileBlock(channels, scaled(layout.channels, width), layout, make_norm))
                channels = scaled(layout.channels, width)
            ends.append(channels)
        stages[-1].append(swished(conv1x1(channels, block.inner)))
        self.stage1, self.stage2, self.stage3, self.stage4 = stages
        self.skip1, self.skip2 = (
            SkipBlock(start, scaled(start, expansion), end, kernel, make_norm)
            for (kernel, expansion), end in zip(SKIPS, ends[:2], strict=True)
        )
        self.feature_dim = scaled(FEATURES, max(1.0, width))
        self.last = nn.Linear(block.inner, self.feature_dim)

    def feature_map_of(self, x: Tensor) -> Tensor:
        first = self.stem(x)
        x = self.stage1(first)
        x = self.stage2(x + self.skip1(first, x))
        x = self.stage3(x + self.skip2(first, x))
        last: Tensor = self.stage4(x)
        return last

    def features_of(self, feature_map: Tensor) -> Tensor:
        return F.hardswish(self.last(feature_map.mean((2, 3))))
