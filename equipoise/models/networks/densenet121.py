"""DenseNet-121, the network of four dense blocks that the DenseNet paper has for ImageNet."""

from __future__ import annotations

from torch import Tensor, nn

from ...core import checks, register
from .._base import Network, NormFactory
from .blocks import conv1x1, conv3x3, norm_relu
from .densenet import DenseBlock, NormReluConv
from .head_last import head_last
from .resnet import STEMS, stem_of

LAYERS, GROWTH, START = (6, 12, 24, 16), 32, 64


@register("densenet121", kind="model", year=2016, arxiv="1608.06993")
class DenseNet121(Network):
    """Dense blocks of 6, 12, 24 and 16 layers with bottlenecks, growth 32; 7.0 M parameters for 10 classes.

    Args:
        stem: "cifar", one 3x3 convolution that keeps the resolution, for images of 32x32 to 64x64; "imagenet" is the
            paper's, a 7x7 convolution and a pooling, for 224x224.

    Between two blocks a 1x1 convolution keeps half of the channels, and 2x2 means half of the resolution. `feature_map`
    and `features` are as in `DenseNet`.

    Differs from the paper: the stem for small images, which is that of its networks for CIFAR. What stem major feature
    weakening was tried with (D.10) is not printed.

    Example:
        >>> DenseNet121(10).feature_dim
        1024

    Reference: Huang, Liu, van der Maaten, Weinberger. Densely Connected Convolutional Networks. CVPR 2017.
    """

    stages = ("stem", "stage1", "stage2", "stage3", "stage4")

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory, stem: str = "cifar") -> None:
        super().__init__()
        plain = checks.one_of("stem", stem, STEMS) == "cifar"
        self.stem = conv3x3(in_channels, START) if plain else stem_of(stem, in_channels, make_norm)
        stages, channels = [], START
        for number, layers in enumerate(LAYERS):
            stages.append(stage := nn.Sequential())
            if number:
                halved = NormReluConv(conv1x1(channels, channels // 2), make_norm)
                stage.append(nn.Sequential(halved, nn.AvgPool2d(2)))
                channels //= 2
            stage.append(block := DenseBlock(channels, layers, GROWTH, True, make_norm))
            channels = block.out_channels
        self.stage1, self.stage2, self.stage3, self.stage4 = stages
        self.feature_dim = channels
        self.norm = make_norm(channels)

    def features_of(self, feature_map: Tensor) -> Tensor:
        return norm_relu(self.norm, feature_map).mean((2, 3))
