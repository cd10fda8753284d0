"""ShuffleNetV2: the paper's sizes, the shuffle, and both kinds of unit by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models import create_model
from equipoise.models.networks.shufflenet_v2 import Unit, shuffled


def by_hand(stages, last, classes):
    """3x3, depthwise and 1x1 weights, two numbers for each channel of a norm, the linear layer."""
    total, channels = 27 * 24 + 2 * 24, 24
    for out, units in zip(stages, (4, 8, 4), strict=True):
        half = out // 2
        for i in range(units):
            seen = channels if i == 0 else half
            total += seen * half + 2 * half + 9 * half + 2 * half + half * half + 2 * half
            total += (9 * seen + 2 * seen + seen * half + 2 * half) * (i == 0)
        channels = out
    return total + channels * last + 2 * last + (last + 1) * classes


@pytest.mark.parametrize(
    ("name", "shape", "millions"),
    [  # table 8 of the paper; 1.4 M in the bias loss supplement too
        ("shufflenet_v2_x0_5", ((48, 96, 192), 1024), 1.4),
        ("shufflenet_v2", ((116, 232, 464), 1024), 2.3),
        ("shufflenet_v2(width=1.5)", ((176, 352, 704), 1024), 3.5),
        ("shufflenet_v2(width=2.0)", ((244, 488, 976), 2048), 7.4),
    ],
)
def test_parameter_counts_are_the_papers(name, shape, millions):
    with torch.device("meta"):
        count = sum(p.numel() for p in create_model(name, 1000).parameters())
    assert count == by_hand(*shape, classes=1000) and count / 1e6 == pytest.approx(millions, abs=0.05)


def test_the_shuffle_takes_channels_in_turn():
    left, right = torch.arange(3.0).view(1, 3, 1, 1), torch.arange(10.0, 13).view(1, 3, 1, 1)
    assert shuffled(left, right).flatten().tolist() == [0, 10, 1, 11, 2, 12]


@pytest.mark.parametrize(("channels", "stride"), [(8, 1), (6, 2)])
def test_a_unit_by_hand(channels, stride):
    unit, x = Unit(channels, 8, lambda n: nn.Identity()).double(), torch.randn(2, channels, 7, 7, dtype=torch.float64)
    first, depthwise, last = (m.weight for m in unit.branch.modules() if isinstance(m, nn.Conv2d))
    left, right = (x[:, :4], x[:, 4:]) if stride == 1 else (x, x)
    y = F.conv2d(right, first).clamp_min(0)
    y = F.conv2d(F.conv2d(y, depthwise, stride=stride, padding=1, groups=4), last).clamp_min(0)
    if stride == 2:
        down, narrow = (m.weight for m in unit.passed.modules() if isinstance(m, nn.Conv2d))
        left = F.conv2d(F.conv2d(left, down, stride=2, padding=1, groups=6), narrow).clamp_min(0)
    out = unit(x)
    assert torch.equal(out[:, 0::2], left)
    torch.testing.assert_close(out[:, 1::2], y)
