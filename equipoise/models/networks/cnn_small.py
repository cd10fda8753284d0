"""A small network for small images, quick on one CPU core."""

from __future__ import annotations

from torch import nn

from ...core import checks, register
from .._base import MOST_CHANNELS, HeadFactory, Network, NormFactory, kaiming_
from ..heads.linear import LinearHead
from .blocks import conv3x3, conv_norm_relu


@register("cnn_small", kind="model")
class SmallCNN(Network):
    """Four 3x3 convolutions, each with norm and ReLU; the last two halve the resolution.

    Args:
        width: channels of the stem and the first stage; the others have two and four times as many. At the default
            of 16 a network for ten classes has 27,000 parameters.

    Differs from the paper: there is none; it is for images of 8x8 to 32x32 where a ResNet would be a waste of time.

    Example:
        >>> SmallCNN(10, in_channels=1)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])

    Reference: none.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int = 3,
        make_norm: NormFactory = nn.BatchNorm2d,
        make_head: HeadFactory = LinearHead,
        width: int = 16,
    ) -> None:
        super().__init__()
        self.width = checks.whole("width", width, 1, MOST_CHANNELS)
        self.stem = conv_norm_relu(conv3x3(in_channels, width), make_norm)
        self.stage1 = conv_norm_relu(conv3x3(width, width), make_norm)
        self.stage2 = conv_norm_relu(conv3x3(width, 2 * width, stride=2), make_norm)
        self.stage3 = conv_norm_relu(conv3x3(2 * width, 4 * width, stride=2), make_norm)
        self.feature_dim = 4 * width
        kaiming_(self)
        self.head = make_head(self.feature_dim, num_classes)
