"""SkipblockNet: parameters and multiplications summed over the table of layers, and what goes where."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models import create_model
from equipoise.models.networks.skipblocknet import Layout, MobileBlock, SkipBlock

# kernel, inner and outer channels, whether channels are weighed, side of the map that comes out of 224x224: by hand,
# from the released table of expansions
BLOCKS = (
    (3, 16, 16, False, 112), (3, 64, 24, False, 56), (3, 72, 24, False, 56), (5, 72, 40, True, 28),
    (5, 120, 40, True, 28), (5, 240, 40, True, 28), (3, 240, 80, False, 14), (3, 200, 80, False, 14),
    (3, 184, 80, False, 14), (3, 184, 80, False, 14), (3, 480, 112, True, 14), (3, 672, 112, True, 14),
    (5, 672, 160, True, 7), (5, 960, 160, True, 7), (5, 960, 160, True, 7),
)  # fmt: skip
SQUEEZED = {72: 24, 120: 32, 240: 64, 480: 120, 672: 168, 960: 240}  # a quarter, to a multiple of 8
SKIPS = ((5, 96, 40, 28), (3, 40, 80, 14))


def counts(classes):
    """Parameters, and multiplications for an image of 224x224."""
    parameters, products = 27 * 16 + 2 * 16, 27 * 16 * 112**2
    channels, side = 16, 112
    for kernel, inner, out, weigh, after in BLOCKS:
        parameters += channels * inner + 2 * inner + kernel**2 * inner + 2 * inner + inner * out + 2 * out
        products += channels * inner * side**2 + (kernel**2 * inner + inner * out) * after**2
        if weigh:
            small = SQUEEZED[inner]
            parameters += 2 * inner * small + small + inner
            products += 2 * inner * small
        channels, side = out, after
    for kernel, inner, out, side in SKIPS:
        parameters += 16 * inner + kernel**2 * inner + inner * out + 4 * inner + 2 * out
        products += (16 * inner + kernel**2 * inner + inner * out) * side**2
    parameters += 160 * 960 + 2 * 960 + 961 * 1280 + 1281 * classes
    products += 160 * 960 * 7**2 + 960 * 1280 + 1280 * classes
    return parameters, products


def products_of(network, image):
    total = 0

    def count(module, inputs, output):
        nonlocal total
        positions = output[0, 0].numel() if isinstance(module, nn.Conv2d) else 1
        total += module.weight.numel() * positions

    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(count)
    network.output(image)
    return total


@pytest.mark.parametrize("classes", [10, 1000])
def test_parameters_and_multiplications(classes):
    with torch.device("meta"):
        network = create_model("skipblocknet", classes)
        found = sum(p.numel() for p in network.parameters()), products_of(network, torch.empty(1, 3, 224, 224))
    assert found == counts(classes)


def test_shapes():
    with torch.device("meta"):
        network = create_model("skipblocknet", 7)
        seen = []
        for stage in network.stages:
            getattr(network, stage).register_forward_hook(lambda m, i, out: seen.append(tuple(out.shape[1:])))
        out = network.output(torch.empty(2, 3, 224, 224))
    assert seen == [(16, 112, 112), (40, 28, 28), (80, 14, 14), (112, 14, 14), (960, 7, 7)]
    assert out.feature_map.shape == (2, 960, 7, 7) and out.features.shape == (2, 1280) and out.logits.shape == (2, 7)


def test_a_skip_block_by_hand():
    block = SkipBlock(2, 4, 3, 5, lambda n: nn.Identity()).double()
    x, like = torch.randn(2, 2, 12, 8, dtype=torch.float64), torch.empty(2, 3, 6, 4)
    widen, within, narrow = (m.weight for m in block.modules() if isinstance(m, nn.Conv2d))
    means = x.reshape(2, 2, 6, 2, 4, 2).mean((3, 5))
    y = F.conv2d(F.conv2d(means, widen).relu(), within, padding=2, groups=4).relu()
    torch.testing.assert_close(block(x, like), F.conv2d(y, narrow))


@pytest.mark.parametrize(("weigh", "hard_swish", "stride"), [(True, True, 1), (False, False, 2), (True, False, 2)])
def test_a_block_by_hand(weigh, hard_swish, stride):
    def act(x):
        return x * (x + 3).clamp(0, 6) / 6 if hard_swish else x.relu()

    layout = Layout(3, 2, 4, weigh, hard_swish, stride)
    block = MobileBlock(4, 4, layout, lambda n: nn.Identity()).double()
    x = 3 * torch.randn(2, 4, 6, 6, dtype=torch.float64)
    widen, within, narrow = (m.weight for m in block.modules() if isinstance(m, nn.Conv2d))
    y = act(F.conv2d(act(F.conv2d(x, widen)), within, stride=stride, padding=1, groups=8))
    if weigh:
        squeeze, excite = (m for m in block.modules() if isinstance(m, nn.Linear))
        inner = (y.mean((2, 3)) @ squeeze.weight.T + squeeze.bias).relu()
        y = y * ((inner @ excite.weight.T + excite.bias + 3).clamp(0, 6) / 6)[:, :, None, None]
    y = F.conv2d(y, narrow)
    torch.testing.assert_close(block(x), x + y if stride == 1 else y)


def test_skip_blocks_lead_from_the_first_block_to_what_follows_the_first_and_second_stage():
    network, given, put_out = create_model("skipblocknet(width=0.25)", 3).eval(), {}, {}

    def note(name):
        def hook(module, inputs, output):
            given[name], put_out[name] = inputs[0], output

        return hook

    for name in (*network.stages, "skip1", "skip2"):
        network.get_submodule(name).register_forward_hook(note(name))
    network(torch.randn(2, 3, 64, 64))
    assert given["skip1"] is given["skip2"] is given["stage1"] is put_out["stem"]
    torch.testing.assert_close(given["stage2"], put_out["stage1"] + put_out["skip1"], rtol=0, atol=0)
    torch.testing.assert_close(given["stage3"], put_out["stage2"] + put_out["skip2"], rtol=0, atol=0)
    assert given["stage4"] is put_out["stage3"] and bool(put_out["skip2"].abs().sum() > 0)


@pytest.mark.parametrize("width", [0, -1, 11])
def test_bad_width(width):
    with pytest.raises(Exception, match="width"):
        create_model(f"skipblocknet(width={width})", 3)
