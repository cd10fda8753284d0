"""NASNet-A: two kinds of cells that a search has found."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core import checks, register
from .._base import MOST_CHANNELS, Network, NormFactory
from .blocks import conv1x1, conv3x3, conv_norm
from .head_last import head_last
from .named import named

MOST_REPEATS = 100


def relu_conv_norm(conv: nn.Module, out_channels: int, make_norm: NormFactory) -> nn.Sequential:
    """A copy of the input is activated, not the input: other parts of a cell read that too."""
    return nn.Sequential(nn.ReLU(), conv, make_norm(out_channels))


def separable(size: int, channels: int, stride: int, make_norm: NormFactory) -> nn.Sequential:
    """ReLU, a depthwise and a 1x1 convolution, norm; twice, and the first strides."""

    def pair(stride: int) -> nn.Sequential:
        depthwise = nn.Conv2d(channels, channels, size, stride, size // 2, groups=channels, bias=False)
        return relu_conv_norm(nn.Sequential(depthwise, conv1x1(channels, channels)), channels, make_norm)

    return nn.Sequential(pair(stride), pair(1))


def mean3x3(stride: int = 1) -> nn.AvgPool2d:
    return nn.AvgPool2d(3, stride, padding=1, count_include_pad=False)


def largest3x3(stride: int = 1) -> nn.MaxPool2d:
    return nn.MaxPool2d(3, stride, padding=1)


class Halved(nn.Module):
    """Half the resolution without losing positions: half of the channels from even ones, half from odd ones."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.even = conv1x1(in_channels, out_channels - out_channels // 2, stride=2)
        self.odd = conv1x1(in_channels, out_channels // 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.even(x), self.odd(F.pad(x, (0, 1, 0, 1))[:, :, 1:, 1:])], 1)


class Cell(nn.Module):
    """Brings both inputs, the outputs of the two cells before, to the same shape; a subclass combines them.

    `before` and `x` have `in_channels[0]` and `in_channels[1]` channels; `halve` says that `before` still has twice the
    resolution.
    """

    outputs: int  # how many times `channels` the cell puts out

    def __init__(self, in_channels: tuple[int, int], channels: int, halve: bool, make_norm: NormFactory) -> None:
        super().__init__()
        older, newer = in_channels
        self.fit_x = relu_conv_norm(conv1x1(newer, channels), channels, make_norm)
        self.fit_before: nn.Module = nn.Identity()
        if halve:
            self.fit_before = relu_conv_norm(Halved(older, channels), channels, make_norm)
        elif older != channels:
            self.fit_before = relu_conv_norm(conv1x1(older, channels), channels, make_norm)
        self.out_channels = self.outputs * channels

    def forward(self, before: Tensor, x: Tensor) -> Tensor:
        return torch.cat(self.combine(self.fit_before(before), self.fit_x(x)), 1)

    def combine(self, before: Tensor, x: Tensor) -> list[Tensor]:
        raise NotImplementedError


class NormalCell(Cell):
    """Keeps the resolution; figure 4 of the paper, on the left."""

    outputs = 6

    def __init__(self, in_channels: tuple[int, int], channels: int, halve: bool, make_norm: NormFactory) -> None:
        super().__init__(in_channels, channels, halve, make_norm)
        make = partial(separable, channels=channels, stride=1, make_norm=make_norm)
        self.x_5x5, self.x_3x3 = make(5), make(3)
        self.before_3x3, self.before_5x5, self.before_3x3_again = make(3), make(5), make(3)
        self.mean = mean3x3()

    def combine(self, before: Tensor, x: Tensor) -> list[Tensor]:
        return [
            before,
            self.x_5x5(x) + self.before_3x3(before),
            self.before_5x5(before) + self.before_3x3_again(before),
            self.mean(x) + before,
            2 * self.mean(before),  # the search chose the same mean twice
            self.x_3x3(x) + x,
        ]


class ReductionCell(Cell):
    """Halves the resolution; figure 4 of the paper, on the right."""

    outputs = 4

    def __init__(self, in_channels: tuple[int, int], channels: int, halve: bool, make_norm: NormFactory) -> None:
        super().__init__(in_channels, channels, halve, make_norm)
        make = partial(separable, channels=channels, make_norm=make_norm)
        self.x_5x5 = make(5, stride=2)
        self.before_7x7, self.before_7x7_again = make(7, stride=2), make(7, stride=2)
        self.before_5x5, self.first_3x3 = make(5, stride=2), make(3, stride=1)
        self.halved_mean, self.halved_largest, self.mean = mean3x3(2), largest3x3(2), mean3x3()

    def combine(self, before: Tensor, x: Tensor) -> list[Tensor]:
        largest = self.halved_largest(x)
        first = self.x_5x5(x) + self.before_7x7(before)
        second = largest + self.before_7x7_again(before)
        third = self.halved_mean(x) + self.before_5x5(before)
        return [second, third, self.mean(first) + second, self.first_3x3(first) + largest]


class Cells(nn.Module):
    """A stage: a reduction cell but in the first stage, then normal cells.

    A cell reads the outputs of the two before it. So a stage puts out its last two, side by side in the channels, and
    a mixing acts on both; the last stage puts out its last one alone, activated.
    """

    def __init__(self, in_channels: int, channels: int, repeats: int, place: str, make_norm: NormFactory) -> None:
        super().__init__()
        self.place = place
        older = newer = in_channels
        cells: list[Cell] = []
        if place != "first":
            cells.append(ReductionCell((older, newer), channels, False, make_norm))
            newer = cells[-1].out_channels
        for i in range(repeats):
            cells.append(NormalCell((older, newer), channels, place != "first" and i == 0, make_norm))
            older, newer = newer, cells[-1].out_channels
        self.cells = nn.ModuleList(cells)
        self.out_channels = newer

    def forward(self, pair: Tensor) -> Tensor:
        before, x = (pair, pair) if self.place == "first" else pair.chunk(2, 1)
        for cell in self.cells:
            before, x = x, cell(before, x)
        return F.relu(x) if self.place == "last" else torch.cat([before, x], 1)


@register("nasnet_a", kind="model", year=2017, arxiv="1707.07012")
class NASNetA(Network):
    """Three stages of normal cells with reduction cells between, for images of 32x32 to 64x64.

    Args:
        repeats: N, the normal cells in each stage; at least 2.
        filters: channels in the cells of the first stage; the last cell puts out 24 times as many. The paper's network
            for CIFAR-10, 6 @ 768, has N = 6 and 32 filters.

    Differs from the paper: no auxiliary classifier and no drop path. The bias loss supplement gives N = 4 and 5.3 M
    parameters, as the paper's 4 @ 1056 for ImageNet has. `nasnet_a_n4` has its 44 filters behind CIFAR's stem: 5.3 M
    parameters with 1000 classes, 4.3 M with 100.

    Example:
        >>> NASNetA(10, repeats=2, filters=4)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Reference: Zoph, Vasudevan, Shlens, Le. Learning Transferable Architectures for Scalable Image Recognition. CVPR
    2018.
    """

    @head_last
    def __init__(self, in_channels: int, make_norm: NormFactory, repeats: int = 4, filters: int = 44) -> None:
        super().__init__()
        self.repeats = checks.whole("repeats", repeats, 2, MOST_REPEATS)
        self.filters = checks.whole("filters", filters, 1, MOST_CHANNELS // 24)
        self.stem = conv_norm(conv3x3(in_channels, 3 * filters), make_norm)
        self.stage1 = Cells(3 * filters, filters, repeats, "first", make_norm)
        self.stage2 = Cells(self.stage1.out_channels, 2 * filters, repeats, "middle", make_norm)
        self.stage3 = Cells(self.stage2.out_channels, 4 * filters, repeats, "last", make_norm)
        self.feature_dim = self.stage3.out_channels


nasnet_a_n4 = named(
    "nasnet_a_n4",
    NASNetA,
    "NASNet-A, N = 4, with 1056 features; 4.3 M parameters for 100 classes.",
    2017,
    "1707.07012",
    repeats=4,
    filters=44,
)
