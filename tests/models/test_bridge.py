"""Networks as other libraries write them, wrapped."""

import copy
import enum
import importlib
import sys
import types
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.core import EquipoiseError
from equipoise.models import CosineHead, LinearHead, Pretraining, create_model, from_torch
from equipoise.norms import GhostBatchNorm2d


class Block(nn.Module):
    """In-place ReLUs, one module used twice and an in-place sum: the habits that break careless hooks."""

    def __init__(self, inplanes, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += self.downsample(x)
        return self.relu(out)


class VisionResNet(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1, self.layer2 = Block(8, 8, 1), nn.Sequential(Block(8, 16, 2))
        self.layer3, self.layer4 = Block(16, 24, 2), nn.Sequential(Block(24, 32, 2), Block(32, 32, 1))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(32, num_classes)

    def body(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))

    def forward(self, x):
        return self.fc(torch.flatten(self.avgpool(self.body(x)), 1))


@pytest.mark.parametrize(("image", "side"), [(64, 2), (32, 1)])
def test_gives_the_networks_own_logits_features_and_map(image, side):
    network = VisionResNet(7).eval()
    x = torch.randn(3, 3, image, image)
    fmap, logits = network.body(x), network(x)
    wrapped = from_torch(copy.deepcopy(network)).eval()
    for _ in range(2):  # the first pass looks everywhere, later ones at one place
        out = wrapped.output(x)
        torch.testing.assert_close(out.logits, logits)
        torch.testing.assert_close(out.feature_map, fmap)
        torch.testing.assert_close(out.features, fmap.mean((2, 3)))
        assert out.feature_map.shape == (3, 32, side, side)
    assert wrapped.feature_dim == 32
    torch.testing.assert_close(wrapped(x), logits)
    assert not any(m._forward_hooks for m in wrapped.modules())


def test_head_and_stages_have_names():
    wrapped = from_torch(VisionResNet(7))
    assert isinstance(wrapped.head, nn.Linear) and wrapped.head.out_features == 7
    assert {"body.layer1", "body.layer4"} <= set(wrapped.stages) and "body.fc" not in wrapped.stages
    assert all(isinstance(wrapped.get_submodule(stage), nn.Module) for stage in wrapped.stages)
    names = [name for name, _ in wrapped.named_parameters(remove_duplicate=False)]
    assert len(names) == len(set(names)) and "head.weight" in names and not any("fc" in name for name in names)


def test_an_exchanged_head_is_used():
    wrapped = from_torch(VisionResNet(7)).eval()
    wrapped.head = CosineHead(32, 3)
    out = wrapped.output(torch.randn(2, 3, 32, 32))
    torch.testing.assert_close(out.logits, wrapped.head(out.features))
    assert out.logits.shape == (2, 3)


def test_a_copy_is_independent():
    wrapped, x = from_torch(VisionResNet(4)).eval(), torch.randn(2, 3, 64, 64)
    wrapped(x)
    twin = copy.deepcopy(wrapped)
    for p in twin.parameters():
        p.data.zero_()
    assert bool((twin.output(x).features == 0).all()) and not bool((wrapped.output(x).features == 0).all())


def test_trains():
    wrapped = from_torch(VisionResNet(4))
    out = wrapped.output(torch.randn(4, 3, 64, 64))
    (out.logits.logsumexp(1).sum() + out.feature_map.square().mean()).backward()
    assert all(p.grad is not None for p in wrapped.parameters())


def test_a_hook_on_a_stage_acts():
    """A mixing acts through a hook on a stage; the bridge must see its result."""
    wrapped, x = from_torch(VisionResNet(4)).eval(), torch.randn(2, 3, 64, 64)
    plain = wrapped.output(x)
    with wrapped.get_submodule("body.layer4").register_forward_hook(lambda m, i, out: out * 0):
        changed = wrapped.output(x)
    assert bool((changed.feature_map == 0).all()) and not bool((plain.feature_map == 0).all())
    torch.testing.assert_close(changed.logits, wrapped.head.bias.expand(2, 4))


def test_nested_heads_and_pooling_by_function():
    class Dense(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12))
            self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Linear(12, 5))

        def forward(self, x):
            return self.classifier(F.adaptive_avg_pool2d(F.relu(self.features(x), inplace=True), 1).flatten(1))

    network, x = Dense().eval(), torch.randn(2, 3, 8, 8)
    logits = network(x)
    wrapped = from_torch(network)
    out = wrapped.output(x)
    torch.testing.assert_close(out.logits, logits)
    assert wrapped.head_name == "classifier.1" and out.feature_map.shape == (2, 12, 8, 8)
    torch.testing.assert_close(out.features, out.feature_map.mean((2, 3)))


def test_the_map_of_densenet_is_the_last_dense_block():
    class DenseNet(nn.Module):
        def __init__(self, block):
            super().__init__()
            parts = {"conv0": nn.Conv2d(3, 6, 3), block: nn.Conv2d(6, 12, 1), "norm5": nn.BatchNorm2d(12)}
            self.features, self.classifier = nn.Sequential(), nn.Linear(12, 5)
            for name, part in parts.items():
                self.features.add_module(name, part)

        def forward(self, x):
            return self.classifier(F.relu(self.features(x), inplace=True).mean((2, 3)))

    x = torch.randn(4, 3, 8, 8)
    known, unknown = from_torch(DenseNet("denseblock4")), from_torch(DenseNet("denseblock3"))
    for _ in range(2):
        features = known.body.features
        torch.testing.assert_close(known.output(x).feature_map, features.denseblock4(features.conv0(x)))
        assert bool((unknown.output(x).feature_map >= 0).all())  # of a network of that name and another build


def test_hidden_layers_after_the_pooling():
    convolutional = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network = convolutional.extend([nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 4)])
    x = torch.randn(2, 3, 8, 8)
    logits = network(x)
    out = from_torch(network).output(x)
    torch.testing.assert_close(out.logits, logits)
    assert out.features.shape == (2, 10) and out.feature_map.shape == (2, 6, 6, 6)


def test_a_network_without_a_map():
    out = from_torch(nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.ReLU(), nn.Linear(8, 3))).output(
        torch.randn(2, 3, 4, 4)
    )
    assert out.feature_map is None and out.features.shape == (2, 8)


def test_the_head_may_be_named():
    class TwoHeads(VisionResNet):
        def __init__(self):
            super().__init__(5)
            self.auxiliary = nn.Linear(32, 2)

    x = torch.randn(2, 3, 32, 32)
    assert from_torch(TwoHeads().eval(), "fc").output(x).logits.shape == (2, 5)
    with pytest.raises(EquipoiseError, match=r"'fcc'.*Did you mean 'fc'"):
        from_torch(TwoHeads(), "fcc")
    with pytest.raises(EquipoiseError, match="head_name"):  # the last linear layer is not the one that gives the logits
        from_torch(TwoHeads()).output(x)


def test_what_follows_the_head_is_not_lost_silently():
    with pytest.raises(EquipoiseError, match="after '1'"):
        from_torch(nn.Sequential(nn.Flatten(), nn.Linear(12, 3), nn.LogSoftmax(1))).output(torch.randn(2, 3, 2, 2))


def test_no_linear_layer():
    with pytest.raises(EquipoiseError, match=r"nn\.Linear"):
        from_torch(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()))
    with pytest.raises(EquipoiseError, match="after '0'"):  # no mean over positions follows this convolution
        from_torch(nn.Sequential(nn.Conv2d(3, 4, 1), nn.Flatten())).output(torch.randn(2, 3, 5, 5))


def squeeze(num_classes):
    """Ends as SqueezeNet does: convolution, ReLU, mean."""
    features = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Dropout(0.5)
    classifier = nn.Conv2d(8, num_classes, 1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*features, *classifier)


@pytest.mark.parametrize("training", [False, True])
def test_a_convolution_for_a_head(training):
    network, x = squeeze(4).eval(), torch.randn(2, 3, 8, 8)
    weight, bias = network[3].weight, network[3].bias
    expected = F.conv2d(network[:3](x), weight, bias).mean((2, 3))
    wrapped = from_torch(network).train(training)
    first, second = wrapped.output(x), wrapped.output(x)
    assert wrapped.head.weight.shape == (4, 8) and first.feature_map.shape == (2, 8, 6, 6)
    for out in (first, second):
        torch.testing.assert_close(out.features, out.feature_map.mean((2, 3)))
    torch.testing.assert_close(wrapped.eval()(x), expected)


def test_auxiliary_classifiers_are_removed():
    class Inception(VisionResNet):
        def __init__(self):
            super().__init__(4)
            self.aux_logits, self.AuxLogits = True, nn.Linear(8, 4)

        def forward(self, x):
            logits = super().forward(x)
            return (logits, self.AuxLogits(x.mean((2, 3)))) if self.training and self.aux_logits else logits

    wrapped = from_torch(Inception(), "fc").train()
    assert wrapped.output(torch.randn(2, 3, 32, 32)).logits.shape == (2, 4)
    assert not any("Aux" in name for name, _ in wrapped.named_parameters())


TIMM_CONFIG = {"mean": (0.4, 0.5, 0.6), "std": (0.1, 0.2, 0.3), "input_size": (3, 160, 160), "license": "apache-2.0"}


class VisionWeights(enum.Enum):
    """As torchvision has one such class for each network."""

    IMAGENET1K_V1 = "a file"
    DEFAULT = IMAGENET1K_V1

    def transforms(self):
        return types.SimpleNamespace(crop_size=[224], mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])


@pytest.fixture
def zoo(monkeypatch):
    """Stand-ins for timm and torchvision, as far as they are called."""
    calls = []

    def make(name, num_classes=1000, in_chans=3, **params):
        calls.append((name, num_classes, in_chans, params))
        if name == "without_norms":
            return nn.Sequential(nn.Flatten(), nn.Linear(48, num_classes))
        network = VisionResNet(num_classes)
        network.conv1 = nn.Conv2d(in_chans, 8, 3, bias=False)
        network.pretrained_cfg = TIMM_CONFIG
        return network

    timm = types.ModuleType("timm")
    timm.list_models, timm.create_model = lambda: ["resnet18", "convnext_tiny", "without_norms"], make
    vision = types.ModuleType("torchvision.models")
    vision.list_models, vision.get_model = lambda: ["resnet18"], make
    vision.get_model_weights = lambda name: VisionWeights
    for name, module in {
        "timm": timm,
        "torchvision": types.ModuleType("torchvision"),
        "torchvision.models": vision,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    return calls


def test_other_libraries_by_name(zoo):
    x = torch.randn(2, 3, 32, 32)
    network = create_model("torchvision/resnet18", 6).eval()
    assert network(x).shape == (2, 6) and type(network.head) is nn.Linear  # as the library makes it
    network = create_model("torchvision/resnet18(weights='DEFAULT')", 6).eval()  # made for another number of classes
    assert network(x).shape == (2, 6) and isinstance(network.head, LinearHead)
    network = create_model(
        "timm/convnext_tiny.in12k(pretrained=True, drop_rate=0.1)", 6, head="cosine", in_channels=1
    ).eval()
    assert network(x[:, :1]).shape == (2, 6) and isinstance(network.head, CosineHead)
    create_model("timm/resnet18", 6, norm="batch", head=nn.Linear)
    assert zoo == [
        ("resnet18", 6, 3, {}),
        ("resnet18", 1000, 3, {"weights": "DEFAULT"}),
        ("convnext_tiny.in12k", 6, 1, {"pretrained": True, "drop_rate": 0.1}),
        ("resnet18", 6, 3, {}),
    ]


def test_pretrained_networks_say_what_images_they_want(zoo):
    assert create_model("timm/resnet18", 6).pretraining is None
    wanted = create_model("timm/resnet18(pretrained=True)", 6).pretraining
    assert wanted == Pretraining("timm/resnet18", (0.4, 0.5, 0.6), (0.1, 0.2, 0.3), 160, "apache-2.0")
    grey = create_model("timm/resnet18(pretrained=True)", 6, in_channels=1).pretraining
    assert grey.mean == pytest.approx((0.5,)) and grey.std == pytest.approx((0.2,))
    assert create_model("timm/resnet18(pretrained=True)", 6, in_channels=4).pretraining is None
    for weights in ("DEFAULT", "IMAGENET1K_V1", "ResNet18_Weights.IMAGENET1K_V1"):
        wanted = create_model(f"torchvision/resnet18(weights={weights!r})", 6).pretraining
        assert (wanted.source, wanted.size) == ("torchvision/resnet18 IMAGENET1K_V1", 224)
        assert wanted.mean == (0.485, 0.456, 0.406) and wanted.std == (0.229, 0.224, 0.225)


def test_the_defaults_of_a_recipe_leave_the_librarys_norms_and_head(zoo):
    torch.manual_seed(2)
    plain = create_model("timm/resnet18", 6)
    torch.manual_seed(2)
    resolved = create_model("timm/resnet18", 6, norm="batch(eps=1e-05, momentum=0.1)", head="linear(prior=None)")
    assert repr(resolved) == repr(plain) and type(plain.body.bn1) is nn.BatchNorm2d
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), resolved.parameters(), strict=True))


def test_chosen_norms_and_heads_take_the_place_of_the_librarys(zoo):
    x = torch.randn(4, 3, 32, 32)
    torch.manual_seed(2)
    plain = create_model("timm/resnet18", 6)
    torch.manual_seed(2)
    network = create_model("timm/resnet18", 6, norm="ghost(ghost_size=2)", head="cosine")
    assert not any(isinstance(m, nn.BatchNorm2d) for m in network.modules())
    assert sum(isinstance(m, GhostBatchNorm2d) for m in network.modules()) == 16
    assert isinstance(network.head, CosineHead) and network(x).shape == (4, 6)
    assert torch.equal(network.body.conv1.weight, plain.body.conv1.weight)  # so that comparisons are paired


def test_no_weights_are_fetched_for_the_meta_device(zoo):
    with torch.device("meta"):
        create_model("timm/resnet18(pretrained=True, drop_rate=0.1)", 6)
        create_model("torchvision/resnet18(weights='DEFAULT')", 6)
    assert [params for *_, params in zoo] == [{"drop_rate": 0.1}, {}]


def test_exports_without_having_been_run():
    network, x = from_torch(VisionResNet(4)).eval(), torch.randn(3, 3, 32, 32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, about its exporters
        exported = torch.export.export(
            network, (x,), dynamic_shapes=({0: torch.export.Dim("batch", max=2**31)},)
        ).module()
        traced = torch.jit.trace(network, x)
    other = torch.randn(5, 3, 32, 32)
    torch.testing.assert_close(exported(other), network(other))
    torch.testing.assert_close(traced(other), network(other))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("timm/resnet81", {}, "Did you mean 'resnet18'"),
        ("tim/resnet18", {}, "Did you mean 'timm'"),
        ("torchvision/resnet18", {"in_channels": 1}, "3 channels, not 1"),
        ("timm/without_norms", {"norm": "ghost(ghost_size=16)"}, "no batch norm to replace"),
        ("timm/resnet18(num_classes=3)", {}, "timm cannot make .*num_classes"),
        ("timm/resnet18(pretrained)", {}, "keyword"),
    ],
)
def test_mistakes(zoo, text, options, message):
    with pytest.raises(EquipoiseError, match=message):
        create_model(text, 6, **options)


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_a_library_that_is_not_installed(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    with pytest.raises(EquipoiseError, match=r"pip install 'equipoise\[zoo\]'"):
        create_model(f"{library}/resnet18", 6)


def test_a_library_that_does_not_fit_this_pytorch(monkeypatch):
    def refuse(name):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(EquipoiseError, match=r"does not fit this PyTorch .*torchvision::nms"):
        create_model("timm/resnet18", 6)
