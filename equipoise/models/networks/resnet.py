"""The ResNets for larger images: 18 layers behind a small stem, 50 behind ImageNet's."""

from __future__ import annotations

from torch import nn

from ...core import register
from .._base import HeadFactory, Network, NormFactory, kaiming_
from ..heads.linear import LinearHead
from .blocks import BasicBlock, Block, Bottleneck, conv3x3, conv_norm_relu, stack


class ResNet(Network):
    """A stem of 64 channels and four stages, each twice as wide as the one before; projections (option B)."""

    stages = ("stem", "stage1", "stage2", "stage3", "stage4")

    def __init__(
        self,
        stem: nn.Module,
        block: Block,
        blocks: tuple[int, int, int, int],
        width: int,
        num_classes: int,
        make_norm: NormFactory,
        make_head: HeadFactory,
    ) -> None:
        super().__init__()
        self.stem = stem
        self.stage1 = stack(block, blocks[0], 64, width, 1, make_norm)
        self.stage2 = stack(block, blocks[1], width, 2 * width, 2, make_norm)
        self.stage3 = stack(block, blocks[2], 2 * width, 4 * width, 2, make_norm)
        self.stage4 = stack(block, blocks[3], 4 * width, 8 * width, 2, make_norm)
        self.feature_dim = 8 * width
        kaiming_(self)
        self.head = make_head(self.feature_dim, num_classes)


@register("resnet18", kind="model", year=2015, arxiv="1512.03385")
def resnet18(
    num_classes: int,
    in_channels: int = 3,
    make_norm: NormFactory = nn.BatchNorm2d,
    make_head: HeadFactory = LinearHead,
) -> ResNet:
    """Four stages of two basic blocks at 64 to 512 channels, for images of 32x32 to 64x64; 11.2 M parameters.

    Differs from the paper: the stem is one 3x3 convolution that keeps the resolution, as the papers on CIFAR-100 and
    Tiny-ImageNet have it; ImageNet's 7x7 stem would leave little of a small image.

    Example:
        >>> resnet18(10).feature_dim
        512

    Reference: He, Zhang, Ren, Sun. Deep Residual Learning for Image Recognition. CVPR 2016.
    """
    stem = conv_norm_relu(conv3x3(in_channels, 64), make_norm)
    return ResNet(stem, BasicBlock, (2, 2, 2, 2), 64, num_classes, make_norm, make_head)


@register("resnet50", kind="model", year=2015, arxiv="1512.03385")
def resnet50(
    num_classes: int,
    in_channels: int = 3,
    make_norm: NormFactory = nn.BatchNorm2d,
    make_head: HeadFactory = LinearHead,
) -> ResNet:
    """Four stages of 3, 4, 6 and 3 bottlenecks at 256 to 2048 channels, for ImageNet's 224x224; 25.6 M parameters.

    Differs from the paper: the 3x3 convolution of a block strides, not the first 1x1 one, as in most code since.

    Example:
        >>> resnet50(10).feature_dim
        2048

    Reference: He, Zhang, Ren, Sun. Deep Residual Learning for Image Recognition. CVPR 2016.
    """
    conv = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
    stem = conv_norm_relu(conv, make_norm).append(nn.MaxPool2d(3, stride=2, padding=1))
    return ResNet(stem, Bottleneck, (3, 4, 6, 3), 256, num_classes, make_norm, make_head)
