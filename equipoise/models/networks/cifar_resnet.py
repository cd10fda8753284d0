"""The ResNets for 32x32 images: 16, 32 and 64 channels."""

from __future__ import annotations

from torch import nn

from ...core import checks, register
from .._base import MOST_CHANNELS, MOST_LAYERS, HeadFactory, Network, NormFactory, kaiming_
from ..heads.linear import LinearHead
from .blocks import PadBlock, conv3x3, conv_norm_relu, stack


@register("cifar_resnet", kind="model", year=2015, arxiv="1512.03385")
class CifarResNet(Network):
    """Three stages of basic blocks at 16, 32 and 64 channels; shortcuts without parameters (option A).

    Args:
        depth: layers with weights, 6 n + 2 for n blocks in each stage. The imbalance papers use 32.
        width: channels of the first stage, 16 in the paper.

    Differs from the paper: nothing known. Weights are drawn as in LDAM-DRW's code: He's normal distribution by fan in,
    the linear layer included. The TensorFlow code of class-balanced loss averages 2x2 positions in the shortcut.

    Example:
        >>> CifarResNet(10)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Reference: He, Zhang, Ren, Sun. Deep Residual Learning for Image Recognition. CVPR 2016.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int = 3,
        make_norm: NormFactory = nn.BatchNorm2d,
        make_head: HeadFactory = LinearHead,
        depth: int = 32,
        width: int = 16,
    ) -> None:
        super().__init__()
        self.depth = checks.whole("depth", depth, 8, MOST_LAYERS)
        self.width = checks.whole("width", width, 1, MOST_CHANNELS)
        if (depth - 2) % 6:
            raise ValueError(f"depth must be 6 n + 2 (8, 14, 20, 26, 32, …), not {depth}")
        blocks = (depth - 2) // 6
        self.stem = conv_norm_relu(conv3x3(in_channels, width), make_norm)
        self.stage1 = stack(PadBlock, blocks, width, width, 1, make_norm)
        self.stage2 = stack(PadBlock, blocks, width, 2 * width, 2, make_norm)
        self.stage3 = stack(PadBlock, blocks, 2 * width, 4 * width, 2, make_norm)
        self.feature_dim = 4 * width
        kaiming_(self)
        self.head = make_head(self.feature_dim, num_classes)
        kaiming_(self.head)


@register("resnet32", kind="model", year=2015, arxiv="1512.03385")
def resnet32(
    num_classes: int,
    in_channels: int = 3,
    make_norm: NormFactory = nn.BatchNorm2d,
    make_head: HeadFactory = LinearHead,
) -> CifarResNet:
    """The CIFAR ResNet of depth 32, 0.46 M parameters: the papers' network for CIFAR. See `CifarResNet`."""
    return CifarResNet(num_classes, in_channels, make_norm, make_head, depth=32)
