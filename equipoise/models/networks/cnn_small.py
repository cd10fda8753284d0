"""A small network for small images, quick on one CPU core."""

from __future__ import annotations

from ...core import checks, register
from .._base import MOST_CHANNELS, Network, NormFactory
from .blocks import conv3x3, conv_norm_relu
from .head_last import head_last


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

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory, width: int = 16) -> None:
        super().__init__()
        self.width = checks.whole("width", width, 1, MOST_CHANNELS)
        self.stem = conv_norm_relu(conv3x3(in_channels, width), make_norm)
        self.stage1 = conv_norm_relu(conv3x3(width, width), make_norm)
        self.stage2 = conv_norm_relu(conv3x3(width, 2 * width, stride=2), make_norm)
        self.stage3 = conv_norm_relu(conv3x3(2 * width, 4 * width, stride=2), make_norm)
        self.feature_dim = 4 * width
