"""NASNet-A: the paper's sizes, both cells written out from its figure 4, and what passes between stages."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models import create_model
from equipoise.models.networks.nasnet import Halved, NormalCell, ReductionCell


def by_hand(repeats, filters, classes):
    """Weights of the separable convolutions, the 1x1 ones that fit a cell's inputs, norms and the linear layer."""

    def separable(size, f):
        return 2 * (size * size * f + f * f + 2 * f)

    def fitting(channels, f):
        return channels * f + 2 * f

    total, older, newer = 27 * 3 * filters + 2 * 3 * filters, 3 * filters, 3 * filters
    for stage, f in enumerate((filters, 2 * filters, 4 * filters)):
        if stage:
            total += fitting(older, f) + fitting(newer, f)
            total += 2 * separable(5, f) + 2 * separable(7, f) + separable(3, f)
            newer = 4 * f
        for _ in range(repeats):
            total += fitting(older, f) + fitting(newer, f) + 2 * separable(5, f) + 3 * separable(3, f)
            older, newer = newer, 6 * f
    return total + (newer + 1) * classes


@pytest.mark.parametrize(
    ("repeats", "filters", "classes", "millions"),
    [
        (6, 32, 10, 3.3),  # 6 @ 768, the paper's table 1
        (4, 44, 1000, 5.3),  # the bias loss supplement's N = 4
        (4, 44, 100, 4.3),
    ],
)
def test_parameter_counts_are_the_papers(repeats, filters, classes, millions):
    with torch.device("meta"):
        network = create_model(f"nasnet_a(repeats={repeats}, filters={filters})", classes)
    count = sum(p.numel() for p in network.parameters())
    assert count == by_hand(repeats, filters, classes) and count / 1e6 == pytest.approx(millions, abs=0.05)
    assert network.feature_dim == 24 * filters


def separable(x, module, stride=1):
    weights = [m.weight for m in module.modules() if isinstance(m, nn.Conv2d)]
    for depthwise, pointwise in zip(weights[::2], weights[1::2], strict=True):
        size = depthwise.shape[-1]
        x = F.conv2d(x.clamp_min(0), depthwise, stride=stride, padding=size // 2, groups=x.shape[1])
        x, stride = F.conv2d(x, pointwise), 1
    return x


def sizes(module):
    return [m.kernel_size[0] for m in module.modules() if isinstance(m, nn.Conv2d) and m.groups > 1]


def mean(x, stride=1):
    return F.avg_pool2d(x, 3, stride, 1, count_include_pad=False)


@pytest.fixture
def inputs():
    return torch.randn(2, 4, 7, 7, dtype=torch.float64), torch.randn(2, 6, 7, 7, dtype=torch.float64)


def test_the_normal_cell_by_hand(inputs):
    cell = NormalCell((4, 6), 4, False, lambda n: nn.Identity()).double()
    before, x = inputs[0], F.conv2d(inputs[1].clamp_min(0), cell.fit_x[1].weight)
    expected = [
        before,
        separable(x, cell.x_5x5) + separable(before, cell.before_3x3),
        separable(before, cell.before_5x5) + separable(before, cell.before_3x3_again),
        mean(x) + before,
        mean(before) + mean(before),
        separable(x, cell.x_3x3) + x,
    ]
    torch.testing.assert_close(cell(*inputs), torch.cat(expected, 1))
    assert [sizes(m)[0] for m in (cell.x_5x5, cell.before_3x3, cell.before_5x5, cell.before_3x3_again, cell.x_3x3)] == [
        *(5, 3, 5, 3, 3),
    ]


def test_the_reduction_cell_by_hand(inputs):
    cell = ReductionCell((4, 6), 4, False, lambda n: nn.Identity()).double()
    before, x = inputs[0], F.conv2d(inputs[1].clamp_min(0), cell.fit_x[1].weight)
    largest = F.max_pool2d(x, 3, 2, 1)
    first = separable(x, cell.x_5x5, 2) + separable(before, cell.before_7x7, 2)
    second = largest + separable(before, cell.before_7x7_again, 2)
    third = mean(x, 2) + separable(before, cell.before_5x5, 2)
    expected = [second, third, mean(first) + second, separable(first, cell.first_3x3) + largest]
    torch.testing.assert_close(cell(*inputs), torch.cat(expected, 1))
    parts = (cell.x_5x5, cell.before_7x7, cell.before_7x7_again, cell.before_5x5, cell.first_3x3)
    assert [sizes(m)[0] for m in parts] == [5, 7, 7, 5, 3]


@pytest.mark.parametrize("side", [6, 7])
def test_halving_sees_even_and_odd_positions(side):
    halved, x = Halved(3, 5).double(), torch.randn(2, 3, side, side, dtype=torch.float64)
    beyond = F.pad(x, (0, 1, 0, 1))
    even = F.conv2d(x[:, :, ::2, ::2], halved.even.weight)
    odd = F.conv2d(beyond[:, :, 1::2, 1::2][:, :, : even.shape[2], : even.shape[3]], halved.odd.weight)
    torch.testing.assert_close(halved(x), torch.cat([even, odd], 1))


def test_a_stage_reads_the_last_two_cells_of_the_one_before():
    network, image = create_model("nasnet_a(repeats=2, filters=4)", 3).eval(), torch.randn(2, 3, 16, 16)
    before = x = network.stem(image)
    for stage in (network.stage1, network.stage2, network.stage3):
        for cell in stage.cells:
            before, x = x, cell(before, x)
    assert bool((x < 0).any())
    torch.testing.assert_close(network.output(image).feature_map, x.clamp_min(0))
