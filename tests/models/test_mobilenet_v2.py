"""MobileNetV2: the paper's sizes, its widths, and a block by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models import create_model
from equipoise.models.networks.mobilenet_v2 import InvertedResidual


@pytest.mark.parametrize(
    ("width", "classes", "parameters"),
    [
        (1.0, 1000, 3_504_872),  # the number every library gives; 3.4 M in the paper's table 4
        (1.0, 100, 3_504_872 - 900 * 1281),
        (0.75, 1000, 2_636_424),  # 2.6 M in the bias loss supplement
    ],
)
def test_parameter_count(width, classes, parameters):
    with torch.device("meta"):
        network = create_model(f"mobilenet_v2(width={width})", classes)
    assert sum(p.numel() for p in network.parameters()) == parameters == by_hand(network.width, classes)


def by_hand(width, classes):
    def round8(channels):  # the nearest multiple of 8 that is not more than 10 % below
        exact = channels * width
        allowed = [m for m in range(8, 2000, 8) if m >= 0.9 * exact]
        return min(allowed, key=lambda m: (abs(m - exact), -m))

    table = ((1, 16, 1), (6, 24, 2), (6, 32, 3), (6, 64, 4), (6, 96, 3), (6, 160, 3), (6, 320, 1))
    channels, total = round8(32), 27 * round8(32) + 2 * round8(32)
    for expansion, out, blocks in table:
        for _ in range(blocks):
            inner = expansion * channels
            total += (channels * inner + 2 * inner) * (expansion > 1)
            total += 9 * inner + 2 * inner + inner * round8(out) + 2 * round8(out)
            channels = round8(out)
    return total + channels * 1280 + 2 * 1280 + 1281 * classes


@pytest.mark.parametrize(("out", "stride", "expansion"), [(4, 1, 6), (4, 1, 1), (6, 1, 6), (4, 2, 6)])
def test_a_block_by_hand(out, stride, expansion):
    block = InvertedResidual(4, out, stride, expansion, lambda n: nn.Identity()).double()
    x = 5 * torch.randn(2, 4, 7, 7, dtype=torch.float64)
    *expand, depthwise, project = (m.weight for m in block.modules() if isinstance(m, nn.Conv2d))
    y = x
    if expand:
        y = F.conv2d(y, expand[0]).clamp(0, 6)
    y = F.conv2d(y, depthwise, stride=stride, padding=1, groups=4 * expansion).clamp(0, 6)
    y = F.conv2d(y, project)
    torch.testing.assert_close(block(x), y + x if (out, stride) == (4, 1) else y)
    assert len(expand) == (expansion > 1)
