"""The ResNets of four stages: stems, groups, and blocks that start as their shortcuts."""

import pytest
import torch
from torch import nn

from equipoise.core import EquipoiseError
from equipoise.models import create_model
from equipoise.models.networks.blocks import BasicBlock, Bottleneck


def by_hand(depth, stem, classes, groups=1, group_width=64):
    """Convolutions, two numbers for each channel of a norm, the linear layer."""
    blocks = {10: (1, 1, 1, 1), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3)} | {
        50: (3, 4, 6, 3),
        101: (3, 4, 23, 3),
        152: (3, 8, 36, 3),
    }
    total, channels = (49 if stem == "imagenet" else 9) * 3 * 64 + 2 * 64, 64
    for stage, count in enumerate(blocks[depth]):
        out = (64 if depth < 50 else 256) * 2**stage
        inner = groups * group_width * 2**stage
        for i in range(count):
            if depth < 50:
                total += 9 * channels * out + 9 * out * out + 4 * out
            else:
                total += channels * inner + 9 * inner * inner // groups + inner * out + 4 * inner + 2 * out
            if i == 0 and channels != out:
                total += channels * out + 2 * out
            channels = out
    return total + (channels + 1) * classes


@pytest.mark.parametrize("stem", ["cifar", "imagenet"])
@pytest.mark.parametrize("depth", [10, 18, 34, 50, 101, 152])
def test_parameter_counts_by_hand(depth, stem):
    with torch.device("meta"):
        network = create_model(f"resnet(depth={depth}, stem={stem!r})", 100)
    assert sum(p.numel() for p in network.parameters()) == by_hand(depth, stem, 100)


@pytest.mark.parametrize(("depth", "group_width"), [(50, 4), (101, 8)])
def test_parameter_counts_of_resnext_by_hand(depth, group_width):
    with torch.device("meta"):
        network = create_model(f"resnext(depth={depth}, group_width={group_width})", 1000)
    assert sum(p.numel() for p in network.parameters()) == by_hand(depth, "imagenet", 1000, 32, group_width)


def test_stems():
    with torch.device("meta"):
        small, large = (create_model(f"resnet(depth=101, stem={stem!r})", 3) for stem in ("cifar", "imagenet"))
    assert small.stem[0].kernel_size == (3, 3) and small.stem[0].stride == (1, 1) and len(small.stem) == 3
    assert large.stem[0].kernel_size == (7, 7) and large.stem[0].stride == (2, 2)
    assert isinstance(large.stem[3], nn.MaxPool2d)
    with pytest.raises(EquipoiseError, match="stem must be one of 'imagenet', 'cifar', not 'small'"):
        create_model("resnet(stem='small')", 3)


def test_the_names_are_members_of_the_family():
    for name, member in (("resnet18", "resnet(depth=18, stem='cifar')"), ("resnet50", "resnet(depth=50)")):
        with torch.device("meta"):
            assert repr(create_model(name, 3)) == repr(create_model(member, 3))


def test_groups_of_resnext():
    with torch.device("meta"):
        network = create_model("resnext(depth=50, stem='cifar')", 3)
    convs = [block.conv2 for block in network.modules() if isinstance(block, Bottleneck)]
    assert {conv.groups for conv in convs} == {32}
    assert sorted({conv.in_channels for conv in convs}) == [128, 256, 512, 1024]


@pytest.mark.parametrize("text", ["cifar_resnet(depth=14", "resnet(depth=10, stem='cifar'"])
def test_zero_gamma_starts_every_block_as_its_shortcut(text):
    torch.manual_seed(0)
    network = create_model(f"{text}, zero_gamma=True)", 3)
    torch.manual_seed(0)
    plain = create_model(f"{text})", 3)
    last = {f"{name}.norm2.weight" for name, m in network.named_modules() if isinstance(m, BasicBlock)}
    for (name, ours), theirs in zip(network.named_parameters(), plain.parameters(), strict=True):
        assert not ours.any() if name in last else torch.equal(ours, theirs)
    block = next(m for m in network.modules() if isinstance(m, BasicBlock))
    x = torch.randn(2, block.conv1.in_channels, 8, 8)
    torch.testing.assert_close(block(x), block.shortcut(x).clamp_min(0))


def test_zero_gamma_needs_a_gamma():
    with pytest.raises(EquipoiseError, match="zero_gamma needs norms with a weight γ, which Identity does not have"):
        create_model("resnet(depth=10, zero_gamma=True)", 3, norm=lambda n: nn.Identity())
