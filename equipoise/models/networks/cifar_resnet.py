"""The ResNets for 32x32 images: 16, 32 and 64 channels."""

from __future__ import annotations

from ...core import checks, register
from .._base import MOST_CHANNELS, MOST_LAYERS, Network, NormFactory
from .blocks import PadBlock, conv3x3, conv_norm_relu, stack, zero_last_gamma_
from .head_last import head_last
from .named import named


@register("cifar_resnet", kind="model", year=2015, arxiv="1512.03385", later=("zero_gamma",))
class CifarResNet(Network):
    """Three stages of basic blocks at 16, 32 and 64 channels; shortcuts without parameters (option A).

    Args:
        depth: layers with weights, 6 n + 2 for n blocks in each stage. The imbalance papers use 32.
        width: channels of the first stage, 16 in the paper.
        zero_gamma: start the last γ of each block at 0, so that each block starts as its shortcut.

    Differs from the paper: nothing known. Weights are drawn as in LDAM-DRW's code: He's normal distribution by fan in,
    the linear layer included. The TensorFlow code of class-balanced loss averages 2x2 positions in the shortcut.

    Example:
        >>> CifarResNet(10)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Reference: He, Zhang, Ren, Sun. Deep Residual Learning for Image Recognition. CVPR 2016.
    """

    draws_head = True

    @head_last
    def __init__(
        self, in_channels: int, make_norm: NormFactory, depth: int = 32, width: int = 16, zero_gamma: bool = False
    ) -> None:
        super().__init__()
        self.depth = checks.whole("depth", depth, 8, MOST_LAYERS)
        self.width = checks.whole("width", width, 1, MOST_CHANNELS)
        self.zero_gamma = checks.truth("zero_gamma", zero_gamma)
        if (depth - 2) % 6:
            raise ValueError(f"depth must be 6 n + 2 (8, 14, 20, 26, 32, …), not {depth}")
        blocks = (depth - 2) // 6
        self.stem = conv_norm_relu(conv3x3(in_channels, width), make_norm)
        self.stage1 = stack(PadBlock, blocks, width, width, 1, make_norm)
        self.stage2 = stack(PadBlock, blocks, width, 2 * width, 2, make_norm)
        self.stage3 = stack(PadBlock, blocks, 2 * width, 4 * width, 2, make_norm)
        self.feature_dim = 4 * width
        if zero_gamma:
            zero_last_gamma_(self)


_PAPER = (2015, "1512.03385")
resnet8 = named("resnet8", CifarResNet, "The CIFAR ResNet of depth 8, 0.08 M parameters.", *_PAPER, depth=8)
resnet20 = named("resnet20", CifarResNet, "The CIFAR ResNet of depth 20, 0.27 M parameters.", *_PAPER, depth=20)
resnet32 = named(
    "resnet32",
    CifarResNet,
    "The CIFAR ResNet of depth 32, 0.46 M parameters: the papers' for CIFAR.",
    *_PAPER,
    depth=32,
)
resnet44 = named("resnet44", CifarResNet, "The CIFAR ResNet of depth 44, 0.66 M parameters.", *_PAPER, depth=44)
resnet56 = named("resnet56", CifarResNet, "The CIFAR ResNet of depth 56, 0.85 M parameters.", *_PAPER, depth=56)
resnet110 = named("resnet110", CifarResNet, "The CIFAR ResNet of depth 110, 1.7 M parameters.", *_PAPER, depth=110)
