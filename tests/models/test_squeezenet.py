"""SqueezeNet: its size, a fire module by hand, and the head that is a convolution."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models import create_model
from equipoise.models.networks.squeezenet import Fire

WIDTHS = ((96, 128), (128, 128), (128, 256), (256, 256), (256, 384), (384, 384), (384, 512), (512, 512))


def test_as_many_weights_as_the_papers_but_for_the_first_convolution():
    network = create_model("squeezenet", 1000)
    fires = sum(i * o // 8 + o // 8 * o // 2 * (1 + 9) for i, o in WIDTHS)
    weights = sum(m.weight.numel() for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear))
    assert weights == 9 * 3 * 96 + fires + 512 * 1000
    # 1,248,424 in the paper's table 1, with a bias for each channel and a first convolution of 7x7
    biases = 96 + sum(o // 8 + o for _, o in WIDTHS) + 1000
    assert weights + 96 * 3 * (49 - 9) + biases == 1_248_424


@pytest.mark.parametrize(("channels", "bypass"), [(16, False), (16, True), (8, True)])
def test_a_fire_module_by_hand(channels, bypass):
    fire, x = Fire(channels, 16, bypass, lambda n: nn.Identity()).double(), torch.randn(2, channels, 5, 5).double()
    squeezed = F.conv2d(x, fire.squeeze[0].weight).clamp_min(0)
    left = F.conv2d(squeezed, fire.expand1x1[0].weight).clamp_min(0)
    right = F.conv2d(squeezed, fire.expand3x3[0].weight, padding=1).clamp_min(0)
    expected = torch.cat([left, right], 1) + (x if bypass and channels == 16 else 0)
    torch.testing.assert_close(fire(x), expected)
    assert squeezed.shape[1] == 2


def test_the_head_is_a_1x1_convolution_and_a_mean():
    network, x = create_model("squeezenet", 7).eval(), torch.randn(2, 3, 32, 32)
    out = network.output(x)
    logits = F.conv2d(out.feature_map, network.head.weight[:, :, None, None], network.head.bias)
    torch.testing.assert_close(out.logits, logits.mean((2, 3)))


def test_bypass_is_around_every_second_fire_module():
    network = create_model("squeezenet(bypass=True)", 7)
    assert [m.bypass for m in network.modules() if isinstance(m, Fire)] == [False, True] * 4
