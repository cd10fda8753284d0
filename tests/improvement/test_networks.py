"""Networks from checkpoints of every kind, and from functions of a user that may do anything."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from equipoise.core import EquipoiseError
from equipoise.improvement.asked import images_for
from equipoise.improvement.networks import Exported, Origin, _wanted, load_network
from equipoise.models import create_model

from .conftest import small_network


@pytest.fixture
def module(monkeypatch):
    """A module of a user, that `import` finds."""
    found = ModuleType("their_networks")
    monkeypatch.setitem(sys.modules, "their_networks", found)
    return found


def saved(network, path, wrap=dict):
    torch.save(wrap(network.state_dict()), path)
    return path


def same_outputs(a, b, size=8, channels=1):
    x = torch.randn(3, channels, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(a.eval()(x), b.eval()(x))


@pytest.mark.parametrize(
    "wrap",
    [
        dict,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": {f"module.{name}": value for name, value in state.items()}},
    ],
    ids=["plain", "state_dict", "model, module."],
)
def test_a_function_makes_the_network(module, tmp_path, wrap):
    network = module.make = small_network()
    module.make = lambda: small_network()
    origin = load_network(saved(network, tmp_path / "net.pt", wrap), "their_networks:make", num_classes=10)
    same_outputs(origin.network, network)
    assert origin.channels == 1 and origin.lines[-1] == "network = make()"


def test_a_function_is_told_the_number_of_classes(module, tmp_path):
    module.make = lambda width=4, num_classes=2: nn.Linear(width, num_classes)
    origin = load_network(saved(nn.Linear(4, 7), tmp_path / "net.pt"), "their_networks:make", num_classes=7)
    assert origin.network.out_features == 7 and origin.lines[-1] == "network = make(num_classes=7)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: 1 / 0, "did not make a network: ZeroDivisionError"),
        (lambda: sys.exit(3), "did not make a network: SystemExit: 3"),
        (lambda needed: None, "did not make a network: TypeError"),
        (lambda: "a network", "must return a torch.nn.Module, and returned 'a network'"),
        (lambda: nn.Linear(4, 5), r"does not fit Linear: other shapes have weight \(3, 4\), not \(5, 4\)"),
        (3, "has no function 'make'"),
    ],
)
def test_what_a_function_does_wrong_is_told(module, tmp_path, make, message):
    module.make = make
    with pytest.raises(EquipoiseError, match=message):
        load_network(saved(nn.Linear(4, 3), tmp_path / "net.pt"), "their_networks:make", num_classes=3)


def test_a_module_that_cannot_be_imported_is_told(tmp_path, monkeypatch):
    (tmp_path / "broken_networks.py").write_text("raise KeyError('x')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = saved(nn.Linear(4, 3), tmp_path / "net.pt")
    with pytest.raises(EquipoiseError, match="broken_networks cannot be imported: KeyError: 'x'"):
        load_network(path, "broken_networks:make", num_classes=3)
    with pytest.raises(EquipoiseError, match="ModuleNotFoundError"):
        load_network(path, "no_such_networks:make", num_classes=3)


@pytest.mark.parametrize("channels", [1, 3])
def test_one_of_ours(tmp_path, channels):
    network = create_model("cnn_small(width=4)", 5, in_channels=channels)
    save_file(network.state_dict(), tmp_path / "net.safetensors")
    origin = load_network(tmp_path / "net.safetensors", "cnn_small(width=4)", num_classes=5)
    same_outputs(origin.network, network, channels=channels)
    assert origin.channels == channels and origin.model == "cnn_small(width=4)"
    made = {}
    exec("\n".join(origin.lines), made)
    made["network"].load_state_dict(network.state_dict())


def test_another_number_of_classes_is_told(tmp_path):
    path = saved(create_model("cnn_small(width=4)", 5), tmp_path / "net.pt")
    with pytest.raises(EquipoiseError, match="does not fit 4 classes; name all of them with --classes"):
        load_network(path, "cnn_small(width=4)", num_classes=4)


def test_a_library_s_network_keeps_its_own_names(tmp_path, monkeypatch):
    library = ModuleType("timm")
    library.list_models = lambda: ["tiny"]

    def create_model(name, num_classes, in_chans=3):
        torch.manual_seed(0)
        layers = [nn.Conv2d(in_chans, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(4, num_classes))

    library.create_model = create_model
    monkeypatch.setitem(sys.modules, "timm", library)
    network = create_model("tiny", 5)
    nn.init.normal_(network[0].weight)
    origin = load_network(saved(network, tmp_path / "net.pt"), "timm/tiny", num_classes=5)
    same_outputs(origin.network, network, channels=3)
    assert origin.lines == ("from timm import create_model", "network = create_model('tiny', num_classes=5)")
    assert origin.wanted.mean == (0.485, 0.456, 0.406)
    grey = load_network(saved(create_model("tiny", 5, 1), tmp_path / "grey.pt"), "timm/tiny", num_classes=5)
    assert grey.channels == 1 and "in_chans=1" in grey.lines[1]


def test_timm_s_own_mean_and_size_are_taken():
    network = nn.Linear(2, 2)
    assert _wanted("timm/tiny", network).size == 224
    network.pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "input_size": (3, 299, 299)}
    origin = Origin(network, (), wanted=_wanted("timm/tiny", network))
    images, words = images_for(origin, Path("."), None, None, None, None, None, batch_size=8)
    assert (images.size, images.resize, images.mean) == (299, 342, (0.5, 0.5, 0.5))
    assert words.endswith("are those of timm/tiny.")
    given, words = images_for(origin, Path("."), None, 64, None, "0.1", "0.2", batch_size=8)
    assert (given.size, given.resize, given.mean, given.std) == (64, None, (0.1,) * 3, (0.2,) * 3)
    assert words.startswith("Images are 64 × 64 pixels; mean 0.100,") and words.endswith("are as given.")


@pytest.mark.parametrize("dynamic", [True, False], ids=["any number", "four images"])
def test_an_exported_network(tmp_path, dynamic):
    network = small_network().eval()
    shapes = ({0: torch.export.Dim("n", min=1, max=64)},) if dynamic else None
    program = torch.export.export(network, (torch.zeros(4, 1, 8, 8),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "net.pt2")
    origin = load_network(tmp_path / "net.pt2", None, num_classes=10)
    assert isinstance(origin.network, Exported) and (origin.channels, origin.size) == (1, 8)
    for n in (1, 4, 7):
        x = torch.randn(n, 1, 8, 8)
        with torch.no_grad():
            torch.testing.assert_close(origin.network(x), network(x))
    made = {"torch": torch, "here": tmp_path}
    exec("\n".join(origin.lines), made)
    with torch.no_grad():
        torch.testing.assert_close(made["network"](x), network(x))


def test_what_is_no_exported_network_is_told(tmp_path):
    (tmp_path / "net.pt2").write_bytes(b"nothing")
    with pytest.raises(EquipoiseError, match="cannot be read as an exported network"):
        load_network(tmp_path / "net.pt2", None, num_classes=10)
    with pytest.raises(EquipoiseError, match="leave --model out"):
        load_network(tmp_path / "net.pt2", "resnet32", num_classes=10)


def test_weights_need_a_network(tmp_path):
    with pytest.raises(EquipoiseError, match="say which network they are of"):
        load_network(saved(nn.Linear(4, 3), tmp_path / "net.pt"), None, num_classes=3)
