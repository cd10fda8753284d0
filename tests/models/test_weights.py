"""Weights from a file: the kinds of file, what fits, and what is said where something does not."""

import warnings

import pytest
import torch
from torch import nn

from equipoise.core import EquipoiseError
from equipoise.models import FreshHead, create_model, from_torch
from equipoise.models.weights import content_of, file_near, load_weights, read_weights, with_content

MODEL = "cnn_small(width=4)"


def trained(classes=3, **options):
    torch.manual_seed(1)
    network = create_model(MODEL, classes, **options)
    network(torch.randn(8, 3, 8, 8))  # so that moving averages are not those of a new network
    return network.eval()


WAYS = {
    "weights.safetensors": lambda state, path: pytest.importorskip("safetensors.torch").save_file(state, path),
    "plain.pt": torch.save,
    "wrapped.pth": lambda state, path: torch.save({"state_dict": state, "epoch": 3}, path),
    "model.ckpt": lambda state, path: torch.save({"model": state, "args": ["x"]}, path),
    "parallel.pt": lambda state, path: torch.save({f"module.{k}": v for k, v in state.items()}, path),
    "both.pt": lambda state, path: torch.save({"model": {f"module.{k}": v for k, v in state.items()}}, path),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_kind_of_file(tmp_path, name):
    network, x = trained(), torch.randn(2, 3, 8, 8)
    WAYS[name](network.state_dict(), tmp_path / name)
    torch.manual_seed(5)
    again = create_model(MODEL, 3, weights=str(tmp_path / name)).eval()
    assert torch.equal(again(x), network(x))


def test_a_head_of_other_classes_stays_as_it_was_drawn(tmp_path):
    network, path = trained(classes=7), tmp_path / "seven.pt"
    torch.save(network.state_dict(), path)
    torch.manual_seed(5)
    plain = create_model(MODEL, 3)
    torch.manual_seed(5)
    with pytest.warns(FreshHead, match=r"drawn anew: .*head.weight \(7, 16\).* the network head.weight \(3, 16\)"):
        started = create_model(MODEL, 3, weights=str(path))
    for name, value in started.state_dict().items():
        source = plain if name.startswith("head.") else network
        assert torch.equal(value, source.state_dict()[name]), name
    with pytest.warns(FreshHead):
        create_model(MODEL, 7, head="planar", weights=str(path))


@pytest.mark.parametrize("norm", ["ghost(ghost_size=4)", "batch_group(groups=4)", "batch_renorm"])
def test_another_norm_takes_the_moving_averages(tmp_path, norm):
    torch.save(trained().state_dict(), tmp_path / "batch.pt")
    started = create_model(MODEL, 3, norm=norm, weights=str(tmp_path / "batch.pt")).eval()
    assert torch.equal(started.stem[1].running_mean, trained().stem[1].running_mean)
    torch.testing.assert_close(started.stem[1].weight, trained().stem[1].weight)


def library_network(classes):
    torch.manual_seed(2)
    body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return body.append(nn.Linear(8, classes))


def test_names_of_another_library():
    """A file of the library itself, and one of a network that was bridged."""
    library, x = library_network(4).eval(), torch.randn(2, 3, 8, 8)
    weights, logits = dict(library.state_dict()), library(x)
    assert set(weights) >= {"0.weight", "5.bias"}
    for state in (weights, dict(from_torch(library_network(4)).state_dict())):
        bridged = from_torch(library_network(4)).eval()
        nn.init.zeros_(bridged.head.weight)
        assert load_weights(bridged, state, "file") is None
        torch.testing.assert_close(bridged(x), logits)
    assert "drawn anew" in load_weights(from_torch(library_network(6)), weights, "file")


def test_a_convolution_for_a_head_and_auxiliary_classifiers():
    squeeze = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    weights = dict(squeeze.state_dict()) | {"AuxLogits.fc.weight": torch.zeros(4, 8)}
    bridged = from_torch(squeeze)
    nn.init.zeros_(bridged.head.weight)
    assert load_weights(bridged, weights, "file") is None
    assert torch.equal(bridged.head.weight, weights["2.weight"].flatten(1))


def changed(**changes):
    state = dict(trained().state_dict())
    for name, value in changes.items():
        if value is None:
            del state[name.replace("__", ".")]
        else:
            state[name.replace("__", ".")] = value
    return state


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: changed(stem__0__weight=None), "does not fit SmallCNN: the file lacks stem.0.weight"),
        (lambda: changed(other=torch.zeros(1)), "does not fit SmallCNN: the network has no other"),
        (
            lambda: changed(stem__0__weight=torch.zeros(4, 1, 3, 3)),
            r"SmallCNN: other shapes have stem.0.weight \(4, 1, 3, 3\), not \(4, 3, 3, 3\)$",
        ),
        (lambda: {"epoch": 3}, "must hold tensors by name, as network.state_dict"),
        (dict, "must hold tensors by name"),
        (lambda: {"state_dict": trained()}, "cannot be read as tensors alone"),
    ],
)
def test_what_does_not_fit(tmp_path, content, message):
    torch.save(content(), tmp_path / "file.pt")
    with pytest.raises(EquipoiseError, match=message):
        create_model(MODEL, 3, weights=str(tmp_path / "file.pt"))


@pytest.mark.parametrize("name", ["file.pt", "file.safetensors"])
def test_a_file_that_is_something_else_or_not_there(tmp_path, name):
    with pytest.raises(EquipoiseError, match="there is no file .*file"):
        create_model(MODEL, 3, weights=str(tmp_path / name))
    (tmp_path / name).write_text("no weights")
    with pytest.raises(EquipoiseError, match="cannot be read as"):
        create_model(MODEL, 3, weights=str(tmp_path / name))


def test_counters_may_be_missing(tmp_path):
    state = {k: v for k, v in trained().state_dict().items() if not k.endswith("num_batches_tracked")}
    torch.save(state, tmp_path / "old.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        create_model(MODEL, 3, weights=str(tmp_path / "old.pt"))


def test_a_file_that_changed_is_refused(tmp_path):
    path = tmp_path / "file.pt"
    torch.save(trained().state_dict(), path)
    text = with_content(str(path))
    assert with_content(text) == text and len(content_of(text)) == 16 and read_weights(text)
    torch.save(trained(classes=4).state_dict(), path)
    assert content_of(str(path)) != content_of(text)
    with pytest.raises(EquipoiseError, match="has changed since"):
        read_weights(text)


def test_the_same_content_elsewhere_is_the_same(tmp_path):
    for name in ("a.pt", "b.pt"):
        (tmp_path / name).write_bytes(b"same")
    assert content_of(str(tmp_path / "a.pt")) == content_of(str(tmp_path / "b.pt"))


def test_a_file_beside_the_study(tmp_path, monkeypatch):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "w.pt").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    beside = str((tmp_path / "study" / "w.pt").resolve())
    assert file_near("w.pt", tmp_path / "study") == beside
    assert file_near("w.pt#0123456789abcdef", tmp_path / "study") == f"{beside}#0123456789abcdef"
    assert file_near("v.pt", tmp_path / "study") == "v.pt"
    (tmp_path / "w.pt").write_bytes(b"y")
    assert file_near("w.pt", tmp_path / "study") == "w.pt"


def test_nothing_is_read_for_the_meta_device():
    with torch.device("meta"):
        create_model(MODEL, 3, weights="not there.pt")
