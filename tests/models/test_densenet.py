"""DenseNet: the papers' parameter counts, and what a block, a transition and the end of the network compute."""

import pytest
import torch
import torch.nn.functional as F

from equipoise.models import create_model
from equipoise.models.networks.densenet import DenseBlock


def parameters(depth, growth, bottleneck, classes):
    """By hand: 3x3 and 1x1 weights, two numbers for each channel that a norm sees, the linear layer."""
    layers = (depth - 4) // (6 if bottleneck else 3)
    channels = 2 * growth if bottleneck else 16
    total = 9 * 3 * channels
    for block in range(3):
        if block:
            kept = channels // 2 if bottleneck else channels
            total += 2 * channels + channels * kept
            channels = kept
        for _ in range(layers):
            if bottleneck:
                total += 2 * channels + channels * 4 * growth + 2 * 4 * growth + 9 * 4 * growth * growth
            else:
                total += 2 * channels + 9 * channels * growth
            channels += growth
    return total + 2 * channels + (channels + 1) * classes


@pytest.mark.parametrize(
    ("name", "shape", "millions"),
    [  # table 2 of Huang et al.; the bias loss supplement has the first two
        ("densenet100_k12", (100, 12, False), 7.0),
        ("densenet100_k24", (100, 24, False), 27.2),
        ("densenet(depth=40)", (40, 12, False), 1.0),
        ("densenet_bc100_k12", (100, 12, True), 0.8),
        ("densenet(depth=250, growth=24, bottleneck=True)", (250, 24, True), 15.3),
        ("densenet(depth=190, growth=40, bottleneck=True)", (190, 40, True), 25.6),
    ],
)
def test_parameter_counts_are_the_papers(name, shape, millions):
    with torch.device("meta"):
        count = sum(p.numel() for p in create_model(name, 10).parameters())
    assert count == parameters(*shape, classes=10)
    assert count / 1e6 == pytest.approx(millions, abs=0.06)


def half(channels):
    """Stands for a norm: y = x/2 + 0.1."""

    class Half(torch.nn.Module):
        def forward(self, x):
            return x / 2 + 0.1

    return Half()


@pytest.mark.parametrize("bottleneck", [False, True])
def test_a_block_by_hand(bottleneck):
    block, x = DenseBlock(5, 3, 4, bottleneck, half).double(), torch.randn(2, 5, 6, 6, dtype=torch.float64)
    seen = [x]
    for layer in block.layers:
        y = torch.cat(seen, 1)
        for part in layer if bottleneck else [layer]:
            weight = part.conv.weight
            y = F.conv2d((y / 2 + 0.1).clamp_min(0), weight, padding=weight.shape[-1] // 2)
        seen.append(y)
    torch.testing.assert_close(block(x), torch.cat(seen, 1))
    assert block.out_channels == 17


def test_the_map_is_before_the_last_norm_and_the_features_are_after_it():
    network = create_model("densenet(depth=10, growth=4)", 5).eval()
    torch.nn.init.normal_(network.norm.weight)
    torch.nn.init.normal_(network.norm.bias)
    x = torch.randn(3, 3, 16, 16)
    out = network.output(x)
    by_stages = network.stage3(network.stage2(network.stage1(network.stem(x))))
    torch.testing.assert_close(out.feature_map, by_stages)
    assert bool((out.feature_map < 0).any())
    normed = out.feature_map / (1 + 1e-5) ** 0.5 * network.norm.weight.view(-1, 1, 1) + network.norm.bias.view(-1, 1, 1)
    torch.testing.assert_close(out.features, normed.clamp_min(0).mean((2, 3)))
    torch.testing.assert_close(out.logits, network.head(out.features))


def test_a_transition_keeps_all_channels_or_half_of_them():
    for text, channels in (("densenet(depth=10, growth=4)", 24), ("densenet(depth=16, growth=4, bottleneck=True)", 8)):
        (halved, _block), x = create_model(text, 5).stage2, torch.randn(2, 24 if "bott" not in text else 16, 7, 7)
        assert halved(x).shape == (2, channels, 3, 3)


@pytest.mark.parametrize(
    ("name", "classes", "count"),
    [
        ("densenet121(stem='imagenet')", 1000, 7_978_856),  # the number every library gives
        # without the 7x7 stem and its norm, and with 10 classes
        ("densenet121", 10, 7_978_856 - 64 * 3 * (49 - 9) - 2 * 64 - 990 * 1025),
    ],
)
def test_densenet121(name, classes, count):
    with torch.device("meta"):
        network = create_model(name, classes)
        assert sum(p.numel() for p in network.parameters()) == count
        side = 224 if classes == 1000 else 32
        out = network.output(torch.empty(1, 3, side, side))
    assert out.feature_map.shape[1:] == ((1024, 7, 7) if classes == 1000 else (1024, 4, 4))
