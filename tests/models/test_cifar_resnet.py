"""The parts of the CIFAR ResNet against arithmetic written out by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models import CifarResNet, resnet32
from equipoise.models.networks.blocks import PadShortcut


@pytest.mark.parametrize(("channels", "out", "side"), [(16, 32, 8), (32, 64, 7), (3, 6, 5)])
def test_option_a_is_slicing_and_zero_padding(channels, out, side):
    x = torch.randn(2, channels, side, side)
    half = (side + 1) // 2
    expected = torch.zeros(2, out, half, half)
    before = (out - channels) // 2
    for i in range(half):
        for j in range(half):
            expected[:, before : before + channels, i, j] = x[:, :, 2 * i, 2 * j]
    assert torch.equal(PadShortcut(channels, out, 2)(x), expected)


def test_only_the_blocks_that_change_shape_have_a_shortcut():
    network = resnet32(10)
    shortcuts = {name: m for name, m in network.named_modules() if name.endswith("shortcut")}
    assert [name for name, m in shortcuts.items() if isinstance(m, PadShortcut)] == [
        "stage2.0.shortcut",
        "stage3.0.shortcut",
    ]
    assert len(shortcuts) == 15 and all(isinstance(m, PadShortcut | nn.Identity) for m in shortcuts.values())


def test_a_forward_pass_by_hand():
    torch.manual_seed(1)
    network = CifarResNet(4, depth=8).double().eval()
    for m in network.modules():  # statistics of a trained network, so that a forgotten norm shows
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_()
            m.running_var.uniform_(0.5, 2)
            nn.init.normal_(m.weight, 1, 0.3)
            nn.init.normal_(m.bias, 0, 0.3)
    p = network.state_dict()

    def norm(x, name):
        shaped = {k: p[f"{name}.{k}"].view(1, -1, 1, 1) for k in ("running_mean", "running_var", "weight", "bias")}
        return (x - shaped["running_mean"]) / (shaped["running_var"] + 1e-5).sqrt() * shaped["weight"] + shaped["bias"]

    x = image = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    x = norm(F.conv2d(x, p["stem.0.weight"], padding=1), "stem.1").clamp_min(0)
    for i, (stride, new) in enumerate([(1, 0), (2, 16), (2, 32)], start=1):
        block = f"stage{i}.0"
        y = norm(F.conv2d(x, p[f"{block}.conv1.weight"], stride=stride, padding=1), f"{block}.norm1").clamp_min(0)
        y = norm(F.conv2d(y, p[f"{block}.conv2.weight"], padding=1), f"{block}.norm2")
        zeros = torch.zeros(2, new // 2, *y.shape[2:], dtype=x.dtype)
        x = (y + torch.cat([zeros, x[:, :, ::stride, ::stride], zeros], 1)).clamp_min(0)
    logits = x.mean((2, 3)) @ p["head.weight"].T + p["head.bias"]
    torch.testing.assert_close(network(image), logits)


def test_the_linear_layer_is_drawn_as_in_ldam_drw():
    head = CifarResNet(1000, depth=8).head
    assert head.weight.std().item() == pytest.approx((2 / 64) ** 0.5, rel=0.02)
