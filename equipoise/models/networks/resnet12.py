"""ResNet-12 of few-shot learning, the network for Tiered-ImageNet."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from ...core import register
from .._base import Network, NormFactory
from .blocks import conv3x3, projection
from .head_last import head_last


class PooledBlock(nn.Module):
    """Three 3x3 convolutions beside a projection, leaky ReLU of slope 0.1, then the largest of each 2x2."""

    def __init__(self, in_channels: int, out_channels: int, make_norm: NormFactory) -> None:
        super().__init__()
        self.conv1, self.norm1 = conv3x3(in_channels, out_channels), make_norm(out_channels)
        self.conv2, self.norm2 = conv3x3(out_channels, out_channels), make_norm(out_channels)
        self.conv3, self.norm3 = conv3x3(out_channels, out_channels), make_norm(out_channels)
        self.shortcut = projection(in_channels, out_channels, 1, make_norm)

    def forward(self, x: Tensor) -> Tensor:
        y = F.leaky_relu(self.norm1(self.conv1(x)), 0.1)
        y = F.leaky_relu(self.norm2(self.conv2(y)), 0.1)
        y = self.norm3(self.conv3(y))
        return F.max_pool2d(F.leaky_relu(y + self.shortcut(x), 0.1), 2)


@register("resnet12", kind="model", year=2019, arxiv="1904.03758")
class ResNet12(Network):
    """Four pooled residual blocks at 64, 160, 320 and 640 channels, for images of 84x84 (16x16 at least).

    Differs from the paper: no dropout and no DropBlock. It has no stem; `stem` does nothing and is there so that
    "after the stem" means the same in every network.

    Example:
        >>> ResNet12(10).feature_dim
        640

    Reference: Lee, Maji, Ravichandran, Soatto. Meta-Learning with Differentiable Convex Optimization. CVPR 2019.
    """

    stages = ("stem", "stage1", "stage2", "stage3", "stage4")

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory) -> None:
        super().__init__()
        self.stem = nn.Identity()
        self.stage1 = PooledBlock(in_channels, 64, make_norm)
        self.stage2 = PooledBlock(64, 160, make_norm)
        self.stage3 = PooledBlock(160, 320, make_norm)
        self.stage4 = PooledBlock(320, 640, make_norm)
        self.feature_dim = 640
