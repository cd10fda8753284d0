"""All-CNN-C: convolutions alone."""

from __future__ import annotations

from torch import nn

from ...core import register
from .._base import Network, NormFactory
from .blocks import conv1x1, conv3x3, conv_norm_relu
from .head_last import head_last


@register("allcnnc", kind="model", year=2014, arxiv="1412.6806")
class AllCNNC(Network):
    """Eight convolutions of 96 and 192 channels; strided ones take the place of pooling. 1.4 M parameters.

    Differs from the paper: as used by Kornblith et al. for CIFAR-10. Batch norm instead of dropout, and the mean over
    positions comes before the last 1x1 convolution, which is thereby a linear head on 192 features. The seventh
    convolution pads its input, so that images of 8x8 fit; the paper's gives 6x6 positions instead of 8x8.

    Example:
        >>> AllCNNC(10).feature_dim
        192

    Reference: Springenberg, Dosovitskiy, Brox, Riedmiller. Striving for Simplicity: The All Convolutional Net. ICLR
    Workshop 2015. Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features?
    NeurIPS 2021.
    """

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory) -> None:
        super().__init__()

        def layers(*convs: nn.Conv2d) -> nn.Sequential:
            return nn.Sequential(*(conv_norm_relu(conv, make_norm) for conv in convs))

        self.stem = layers(conv3x3(in_channels, 96))
        self.stage1 = layers(conv3x3(96, 96), conv3x3(96, 96, stride=2))
        self.stage2 = layers(conv3x3(96, 192), conv3x3(192, 192), conv3x3(192, 192, stride=2))
        self.stage3 = layers(conv3x3(192, 192), conv1x1(192, 192))
        self.feature_dim = 192
