"""The ResNets of four stages, and ResNeXt; behind ImageNet's stem or one for small images."""

from __future__ import annotations

from functools import partial

from torch import nn

from ...core import checks, register
from .._base import MOST_CHANNELS, Network, NormFactory
from .blocks import BasicBlock, Block, Bottleneck, conv3x3, conv_norm_relu, stack, zero_last_gamma_
from .head_last import head_last
from .named import named

STEMS = ("imagenet", "cifar")

# depth -> blocks of each stage
BASIC = {10: (1, 1, 1, 1), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
BOTTLENECK = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def stem_of(name: str, in_channels: int, make_norm: NormFactory) -> nn.Sequential:
    """64 channels: ImageNet's 7x7 convolution and pooling leave a quarter of the resolution, one 3x3 keeps it."""
    if checks.one_of("stem", name, STEMS) == "cifar":
        return conv_norm_relu(conv3x3(in_channels, 64), make_norm)
    conv = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
    return conv_norm_relu(conv, make_norm).append(nn.MaxPool2d(3, stride=2, padding=1))


class FourStages(Network):
    """A stem of 64 channels and four stages, each twice as wide as the one before; projections (option B)."""

    stages = ("stem", "stage1", "stage2", "stage3", "stage4")

    def _build(
        self, stem: nn.Module, block: Block, blocks: tuple[int, ...], width: int, make_norm: NormFactory
    ) -> None:
        self.stem = stem
        self.stage1 = stack(block, blocks[0], 64, width, 1, make_norm)
        self.stage2 = stack(block, blocks[1], width, 2 * width, 2, make_norm)
        self.stage3 = stack(block, blocks[2], 2 * width, 4 * width, 2, make_norm)
        self.stage4 = stack(block, blocks[3], 4 * width, 8 * width, 2, make_norm)
        self.feature_dim = 8 * width


@register("resnet", kind="model", year=2015, arxiv="1512.03385")
class ResNet(FourStages):
    """Four stages of basic blocks at 64 to 512 channels, or from depth 50 of bottlenecks at 256 to 2048.

    Args:
        depth: 10, 18, 34, 50, 101 or 152.
        stem: "imagenet" is a 7x7 convolution and a pooling, for 224x224; "cifar" one 3x3 convolution that keeps the
            resolution, for images of 32x32 to 64x64, as the papers on CIFAR-100 and Tiny-ImageNet have it.
        zero_gamma: start the last γ of each block at 0, so that each block starts as its shortcut.

    Differs from the paper: the 3x3 convolution of a bottleneck strides, not the first 1x1 one, as in most code since.
    Depth 10, one basic block in each stage, is not in it. `resnet18` has CIFAR's stem, the other names ImageNet's.
    Starting γ at 0 is from Goyal et al.

    Example:
        >>> ResNet(10, depth=10, stem="cifar").feature_dim
        512

    Reference: He, Zhang, Ren, Sun. Deep Residual Learning for Image Recognition. CVPR 2016. Goyal, Dollár, Girshick,
    Noordhuis, Wesolowski, Kyrola, Tulloch, Jia, He. Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour. 2017.
    """

    @head_last
    def __init__(
        self,
        in_channels: int,
        make_norm: NormFactory,
        depth: int = 50,
        stem: str = "imagenet",
        zero_gamma: bool = False,
    ) -> None:
        super().__init__()
        layouts = BASIC | BOTTLENECK
        if checks.whole("depth", depth) not in layouts:
            raise ValueError(f"depth must be one of {', '.join(map(str, layouts))}, not {depth}")
        self.depth, self.zero_gamma = depth, checks.truth("zero_gamma", zero_gamma)
        block, width = (BasicBlock, 64) if depth in BASIC else (Bottleneck, 256)
        first = stem_of(stem, in_channels, make_norm)
        self._build(first, block, layouts[depth], width, make_norm)
        if zero_gamma:
            zero_last_gamma_(self)


@register("resnext", kind="model", year=2016, arxiv="1611.05431")
class ResNeXt(FourStages):
    """A ResNet of bottlenecks whose 3x3 convolutions are in groups.

    Args:
        depth: 50, 101 or 152.
        groups: of channels in each 3x3 convolution; 32 in the paper.
        group_width: channels of a group in the first stage; 4 in the paper.
        stem: "imagenet" or "cifar", as for `resnet`.
        zero_gamma: start the last γ of each block at 0.

    Differs from the paper: nothing known. Depth 152 is not in it.

    Example:
        >>> ResNeXt(10, depth=50).feature_dim
        2048

    Reference: Xie, Girshick, Dollár, Tu, He. Aggregated Residual Transformations for Deep Neural Networks. CVPR 2017.
    """

    @head_last
    def __init__(
        self,
        in_channels: int,
        make_norm: NormFactory,
        depth: int = 50,
        groups: int = 32,
        group_width: int = 4,
        stem: str = "imagenet",
        zero_gamma: bool = False,
    ) -> None:
        super().__init__()
        if checks.whole("depth", depth) not in BOTTLENECK:
            raise ValueError(f"depth must be one of {', '.join(map(str, BOTTLENECK))}, not {depth}")
        self.groups = checks.whole("groups", groups, 1, MOST_CHANNELS // 8)
        self.group_width = checks.whole("group_width", group_width, 1, MOST_CHANNELS // 8 // groups)
        self.depth, self.zero_gamma = depth, checks.truth("zero_gamma", zero_gamma)
        block = partial(Bottleneck, groups=groups, inner_share=groups * group_width / 256)
        first = stem_of(stem, in_channels, make_norm)
        self._build(first, block, BOTTLENECK[depth], 256, make_norm)
        if zero_gamma:
            zero_last_gamma_(self)


_PAPER = (2015, "1512.03385")
resnet10 = named("resnet10", ResNet, "ResNet-10 for ImageNet-LT, 5.4 M parameters for 1000 classes.", *_PAPER, depth=10)
resnet18 = named(
    "resnet18", ResNet, "ResNet-18 for images of 32x32 to 64x64, 11.2 M parameters.", *_PAPER, depth=18, stem="cifar"
)
resnet34 = named("resnet34", ResNet, "ResNet-34 for ImageNet, 21.8 M parameters for 1000 classes.", *_PAPER, depth=34)
resnet50 = named("resnet50", ResNet, "ResNet-50 for ImageNet, 25.6 M parameters for 1000 classes.", *_PAPER, depth=50)
resnet101 = named(
    "resnet101", ResNet, "ResNet-101 for ImageNet, 44.5 M parameters for 1000 classes.", *_PAPER, depth=101
)
resnet152 = named(
    "resnet152", ResNet, "ResNet-152 for ImageNet, 60.2 M parameters for 1000 classes.", *_PAPER, depth=152
)
resnext50 = named(
    "resnext50", ResNeXt, "ResNeXt-50 (32x4d) for ImageNet, 25.0 M parameters for 1000 classes.", 2016, "1611.05431"
)
