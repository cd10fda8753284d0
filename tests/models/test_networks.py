"""What holds for every network: sizes, shapes, stages, norms, and how weights are drawn."""

import inspect

import pytest
import torch
from torch import nn

from equipoise.core import EquipoiseError, Output, card, cards
from equipoise.models import CifarResNet, LinearHead, create_model

SMALL = (
    "cnn_small",
    "resnet32",
    "cifar_resnet(depth=8)",
    "wide_resnet(depth=10, widen=1)",
    "densenet(depth=10, growth=4)",
    "densenet(depth=16, growth=4, bottleneck=True)",
    "squeezenet",
    "mobilenet_v2(width=0.25)",
    "shufflenet_v2(width=0.5)",
    "nasnet_a(repeats=2, filters=4)",
    "skipblocknet(width=0.25)",
)  # quick enough for each test
NOT_A_MEAN = ("densenet", "skipblocknet")  # their features have a norm or a layer more
BIG = (
    *("resnet18", "resnet12", "allcnnc", "wrn_16_8", "resnet50", "resnet10", "resnext50"),
    *("densenet100_k12", "densenet_bc100_k12", "resnet(depth=101, stem='cifar')"),
)


def size(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("name", "num_classes", "parameters"),
    [
        ("cnn_small", 10, 26_682),  # 9·(3·16 + 16·16 + 16·32 + 32·64) + 2·(16 + 16 + 32 + 64) + 65·10
        ("resnet32", 10, 464_154),  # 0.46 M in the papers
        ("resnet32", 100, 470_004),
        ("cifar_resnet(depth=20)", 10, 269_722),  # He et al.: 0.27 M
        ("cifar_resnet(depth=56)", 10, 853_018),  # 0.85 M
        ("cifar_resnet(depth=110)", 10, 1_727_962),  # 1.7 M
        ("resnet8", 10, 75_290),
        ("resnet20", 10, 269_722),
        ("resnet44", 10, 658_586),  # 0.66 M
        ("resnet56", 10, 853_018),
        ("resnet110", 10, 1_727_962),
        ("resnet18", 10, 11_173_962),
        ("resnet(depth=18)", 1000, 11_689_512),  # the numbers every library gives
        ("resnet34", 1000, 21_797_672),
        ("resnet50", 1000, 25_557_032),
        ("resnet101", 1000, 44_549_160),
        ("resnet152", 1000, 60_192_808),
        ("resnext50", 1000, 25_028_904),  # 25.0 M in Xie et al.
        ("resnext(depth=101, group_width=8)", 1000, 88_791_336),
        ("resnet(depth=101, stem='cifar')", 1000, 44_549_160 - 64 * 3 * (49 - 9)),
        ("wrn_16_8", 10, 10_961_370),  # 11.0 M in Zagoruyko and Komodakis
        # 9·(3·96 + 2·96·96 + 96·192 + 3·192·192) + 192·192 + 2·(3·96 + 5·192) + 193·10
        ("allcnnc", 10, 1_370_986),
        (
            "resnet12",
            10,
            12_430_730,
        ),  # Σ 9·(i·o + 2·o·o) + i·o + 8·o over (3, 64), (64, 160), (160, 320), (320, 640) + 641·10
    ],
)
def test_parameter_count(name, num_classes, parameters):
    with torch.device("meta"):
        assert size(create_model(name, num_classes)) == parameters


@pytest.mark.parametrize(
    ("name", "image", "maps"),
    [
        ("cnn_small", 8, [(16, 8), (16, 8), (32, 4), (64, 2)]),
        ("cnn_small", 28, [(16, 28), (16, 28), (32, 14), (64, 7)]),
        ("resnet32", 8, [(16, 8), (16, 8), (32, 4), (64, 2)]),
        ("resnet32", 28, [(16, 28), (16, 28), (32, 14), (64, 7)]),
        ("resnet32", 32, [(16, 32), (16, 32), (32, 16), (64, 8)]),
        ("resnet18", 8, [(64, 8), (64, 8), (128, 4), (256, 2), (512, 1)]),
        ("resnet18", 32, [(64, 32), (64, 32), (128, 16), (256, 8), (512, 4)]),
        ("resnet12", 28, [(1, 28), (64, 14), (160, 7), (320, 3), (640, 1)]),
        ("resnet12", 84, [(1, 84), (64, 42), (160, 21), (320, 10), (640, 5)]),
        ("allcnnc", 8, [(96, 8), (96, 4), (192, 2), (192, 2)]),
        ("allcnnc", 28, [(96, 28), (96, 14), (192, 7), (192, 7)]),
        ("allcnnc", 32, [(96, 32), (96, 16), (192, 8), (192, 8)]),
        ("wrn_16_8", 8, [(16, 8), (128, 8), (256, 4), (512, 2)]),
        ("wrn_16_8", 32, [(16, 32), (128, 32), (256, 16), (512, 8)]),
        ("resnet50", 64, [(64, 16), (256, 16), (512, 8), (1024, 4), (2048, 2)]),
        ("resnet(depth=50, stem='cifar')", 32, [(64, 32), (256, 32), (512, 16), (1024, 8), (2048, 4)]),
        ("resnet10", 224, [(64, 56), (64, 56), (128, 28), (256, 14), (512, 7)]),
        ("resnext50", 224, [(64, 56), (256, 56), (512, 28), (1024, 14), (2048, 7)]),
        ("densenet100_k12", 32, [(16, 32), (400, 32), (784, 16), (1168, 8)]),
        ("densenet_bc100_k12", 32, [(24, 32), (216, 32), (300, 16), (342, 8)]),
        ("densenet100_k24", 64, [(16, 64), (784, 64), (1552, 32), (2320, 16)]),
        ("densenet100_k12", 29, [(16, 29), (400, 29), (784, 14), (1168, 7)]),
        ("densenet121", 32, [(64, 32), (256, 32), (512, 16), (1024, 8), (1024, 4)]),
        ("squeezenet", 32, [(96, 32), (256, 16), (512, 8), (512, 4)]),
        ("squeezenet", 9, [(96, 9), (256, 4), (512, 2), (512, 1)]),
        ("mobilenet_v2", 32, [(32, 32), (24, 32), (32, 16), (96, 8), (1280, 4)]),
        ("mobilenet_v2(width=0.75)", 29, [(24, 29), (24, 29), (24, 15), (72, 8), (1280, 4)]),
        ("shufflenet_v2_x0_5", 32, [(24, 32), (48, 16), (96, 8), (1024, 4)]),
        ("shufflenet_v2_x0_5", 29, [(24, 29), (48, 15), (96, 8), (1024, 4)]),
        # a stage of cells puts out its last two, 2·6·44 and 2·6·88 channels
        ("nasnet_a_n4", 32, [(132, 32), (528, 32), (1056, 16), (1056, 8)]),
        ("nasnet_a(repeats=2, filters=4)", 29, [(12, 29), (48, 29), (96, 15), (96, 8)]),
    ],
)
def test_shapes_after_each_stage(name, image, maps):
    with torch.device("meta"):  # shapes without the arithmetic
        network = create_model(name, 7, in_channels=1)
        x = torch.empty(2, 1, image, image)
        seen = []
        for stage in network.stages:
            network.get_submodule(stage).register_forward_hook(lambda m, i, out: seen.append(tuple(out.shape)))
        out = network.output(x)
    assert network.stages == ("stem", *(f"stage{i}" for i in range(1, len(maps))))
    assert seen == [(2, channels, side, side) for channels, side in maps]
    assert out.feature_map.shape == seen[-1]
    assert out.features.shape == (2, network.feature_dim) == (2, maps[-1][0])
    assert out.logits.shape == (2, 7)


@pytest.mark.parametrize("name", [*(name for name in SMALL if name.split("(")[0] not in NOT_A_MEAN), "allcnnc"])
def test_output_holds_what_the_head_sees(name):
    network = create_model(name, 5).eval()
    x = torch.randn(3, 3, 16, 16)
    out = network.output(x)
    assert isinstance(out, Output)
    torch.testing.assert_close(network(x), out.logits, rtol=0, atol=0)
    torch.testing.assert_close(out.features, out.feature_map.mean((2, 3)))
    torch.testing.assert_close(network.head(out.features), out.logits)
    assert bool((out.feature_map >= 0).all()) and bool((out.feature_map > 0).any())  # the map is after the last ReLU


@pytest.mark.parametrize("name", [*SMALL, *BIG])
def test_every_norm_comes_from_the_factory(name):
    made = []

    class Mark(nn.Module):
        def __init__(self, num_features):
            super().__init__()
            self.num_features = num_features
            made.append(self)

        def forward(self, x):
            assert x.shape[1] == self.num_features
            self.seen = True
            return x

    with torch.device("meta"):
        network = create_model(name, 4, norm=Mark)
        network(torch.empty(2, 3, 32, 32))
        plain = create_model(name, 4)
    assert not any(type(m).__name__.endswith(("Norm", "Norm2d")) for m in network.modules())
    assert all(m.seen for m in made)
    assert len(made) == sum(isinstance(m, nn.BatchNorm2d) for m in plain.modules()) > 0
    assert {id(m) for m in network.modules() if isinstance(m, Mark)} == {id(m) for m in made}


@pytest.mark.parametrize("name", SMALL)
def test_weights_depend_on_the_seed_alone(name):
    def state(seed, **options):
        torch.manual_seed(seed)
        return create_model(name, 4, **options).state_dict()

    first, again, other = state(3), state(3), state(4)
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])
    # comparisons are paired: whatever the head and the norm, the convolutions start alike
    for changed in (state(3, head="cosine"), state(3, norm=lambda n: nn.GroupNorm(1, n))):
        assert all(torch.equal(first[k], changed[k]) for k in first if first[k].dim() == 4)


@pytest.mark.parametrize("name", SMALL)
def test_convolutions_are_drawn_by_fan_in(name):
    network = create_model(f"{name.partition('(')[0]}", 4)
    convs = [m for m in network.modules() if isinstance(m, nn.Conv2d) and m.weight.numel() > 4000]
    for conv in convs:
        fan_in = conv.weight[0].numel()
        assert conv.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.05)
        assert conv.bias is None


@pytest.mark.parametrize("name", SMALL)
def test_gradients_reach_every_parameter(name):
    network = create_model(name, 3)
    network(torch.randn(4, 3, 16, 16)).logsumexp(1).sum().backward()
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in network.parameters())


@pytest.mark.parametrize("name", [*SMALL[:4], "squeezenet"])  # depthwise convolutions are slow in bf16 on a CPU
@pytest.mark.usefixtures("bf16")
def test_batch_of_one_and_bf16(name):
    network = create_model(name, 3).eval()
    x = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(network(x[:1]), network(x)[:1], rtol=1e-4, atol=1e-5)
    with torch.autocast("cpu", torch.bfloat16):
        half = network(x)
    torch.testing.assert_close(half.float(), network(x), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", SMALL)
def test_channels_last_gives_the_same(name):
    network, x = create_model(name, 3).eval(), torch.randn(2, 3, 16, 16)
    before = network(x)
    network.to(memory_format=torch.channels_last)
    after = network.output(x.contiguous(memory_format=torch.channels_last))
    assert after.feature_map.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(after.logits, before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        *("cifar_resnet(depth=33)", "wide_resnet(depth=18)", "cnn_small(width=0)", "resnet32(depth=3)"),
        *("densenet(depth=12)", "densenet(depth=13, bottleneck=True)", "resnet(depth=32)", "resnext(depth=18)"),
        *("shufflenet_v2(width=0.75)", "mobilenet_v2(width=0)", "resnext(group_width=100)"),
    ],
)
def test_impossible_parameters_are_refused(text):
    with pytest.raises(EquipoiseError, match=r"depth|width"):
        create_model(text, 3)


@pytest.mark.parametrize("entry", cards("model"), ids=lambda entry: entry.name)
def test_registered_models_have_a_default_for_all_but_the_classes(entry):
    parameters = inspect.signature(entry.factory).parameters
    assert list(parameters)[:4] == ["num_classes", "in_channels", "make_norm", "make_head"]
    assert parameters["make_norm"].default is nn.BatchNorm2d and parameters["make_head"].default is LinearHead
    assert {"make_norm", "make_head"} <= set(entry.facts)
    assert entry.summary.endswith(".") or "parameters" in entry.summary


def test_a_networks_own_parameters_follow_the_shared_ones():
    assert CifarResNet(10, 1, nn.BatchNorm2d, LinearHead, 8, width=4).depth == 8
    with pytest.raises(TypeError, match=r"CifarResNet.__init__\(\) got an unexpected keyword argument 'widht'"):
        CifarResNet(10, widht=4)


def test_a_models_recipe_text_holds_no_factories():
    assert set(card("cifar_resnet", "model").parameters) == {"depth", "width", "zero_gamma"}
    assert not card("resnet32", "model").parameters
