"""`equipoise improve` as a user meets it, with images in folders."""

import json
import os
import subprocess
import sys

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from typer.testing import CliRunner

import equipoise
from equipoise.cli import app
from equipoise.core import EquipoiseError
from equipoise.improvement.asked import class_names, counts
from equipoise.models import create_model

from .conftest import train

MODULE = """
from torch import nn


def make(num_classes):
    layers = [nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1, stride=2)]
    layers += [nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, num_classes)]
    return nn.Sequential(*layers)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, digits, trained):
    """A folder with a checkpoint, the module that makes its network, and digits in files."""
    place = tmp_path_factory.mktemp("improve")
    for row, (image, label) in enumerate(zip(digits.task.test.images, digits.test_y.tolist(), strict=True)):
        folder = place / "photos" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0].numpy()).save(folder / f"{row}.png")
    (place / "their_digits.py").write_text(MODULE)
    torch.save({"state_dict": trained.state_dict()}, place / "net.pt")
    return place


HOW = ("net.pt", "--data", "photos", "--model", "their_digits:make", "--size", "8", "--mean", "0", "--std", "1")


def command(place, *arguments, **environment):
    environment = {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1", **environment}
    line = [sys.executable, "-m", "equipoise", "improve", *arguments, "--device", "cpu"]
    return subprocess.run(line, capture_output=True, text=True, cwd=place, env=environment, timeout=120)


def test_from_a_checkpoint_to_a_script_that_names_digits(place, digits):
    done = command(place, *HOW, "--train-counts", ",".join(map(str, digits.counts.tolist())), "--out", "out")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "improved the balanced accuracy" in " ".join(lines[:2])
    assert max(map(len, lines)) <= 80
    assert "mean 0.000 and standard deviation 1.000 are as given" in " ".join(lines)
    notes = json.loads((place / "out" / "improve.json").read_text())
    assert notes["images"]["size"] == 8 and notes["class_names"] == list("0123456789")
    some = sorted((place / "photos" / "0").glob("*.png"))[:10]
    used = subprocess.run(
        [sys.executable, "out/use.py", *map(str, some)], capture_output=True, text=True, cwd=place, timeout=120
    )
    assert used.returncode == 0, used.stderr
    named = [line.split()[1] for line in used.stdout.splitlines()]
    assert len(named) == 10 and named.count("0") >= 8


def run_here(place, monkeypatch, *arguments):
    """The command in this process, which is faster."""
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(place)
    return CliRunner().invoke(app, ["improve", *map(str, arguments), "--device", "cpu"])


def test_unlabelled_images_and_named_classes(place, monkeypatch):
    (place / "classes.txt").write_text("\n".join("0123456789"))
    more = ("--classes", "classes.txt", "--unlabelled", "photos", "--out", "out2")
    done = run_here(place, monkeypatch, *HOW, *more)
    assert done.exit_code == 0, done.exception
    prior = json.loads((place / "out2" / "improve.json").read_text())["prior"]
    assert sum(abs(share - 0.1) for share in prior) <= 0.1


def test_mean_and_std_of_our_networks_are_measured_and_said(place, monkeypatch):
    torch.manual_seed(0)
    save_file(create_model("cnn_small(width=4)", 10, in_channels=1).state_dict(), place / "ours.safetensors")
    done = run_here(
        place, monkeypatch, "ours.safetensors", "--data", "photos", "--model", "cnn_small(width=4)", "--size", 8
    )
    assert done.exit_code == 0, done.exception
    assert "are measured on these images" in " ".join(done.output.split())
    assert (place / "ours_improved" / "improve.json").is_file()


@pytest.fixture(scope="module")
def ours(place, digits):
    """The options for a network of equipoise, trained by plain PyTorch."""
    torch.manual_seed(0)
    network = train(create_model("cnn_small(width=4)", 10, in_channels=1), digits.x, digits.y, epochs=6)
    save_file(network.state_dict(), place / "trained.safetensors")
    told = ",".join(map(str, digits.counts.tolist()))
    shown = ("--data", "photos", "--model", "cnn_small(width=4)", "--size", 8, "--mean", 0, "--std", 1)
    return ("trained.safetensors", *shown, "--train-counts", told)


def test_a_network_of_ours_becomes_a_model_to_predict_with(place, monkeypatch, ours, digits):
    done = run_here(place, monkeypatch, *ours, "--out", "out3")
    said = " ".join(done.output.split())
    assert done.exit_code == 0 and "improved the balanced accuracy" in said, done.output
    assert "'equipoise predict out3/model IMAGES' and 'equipoise export out3/model' use it." in said
    model = equipoise.TrainedModel.load(place / "out3" / "model")
    files = sorted((place / "photos").glob("*/*.png"))
    told = equipoise.predict(model, files)
    right = [name == path.parent.name for name, path in zip(told.labels, files, strict=True)]
    after = json.loads((place / "out3" / "improve.json").read_text())["scores"]["accuracy"]["after"]
    assert after["low"] - 0.05 < sum(right) / len(right) < after["high"] + 0.05
    card = (place / "out3" / "model" / "README.md").read_text()
    assert "On images that were held out" in card and "corrected by 'equipoise improve'" in card
    assert model.description.class_counts == tuple(digits.counts.tolist())


def test_what_cannot_be_made_again_is_no_model(place, monkeypatch, ours):
    run_here(place, monkeypatch, *ours, "--out", "out4")
    assert (place / "out4" / "model" / "model.json").exists()
    done = run_here(place, monkeypatch, *HOW, "--train-counts", ours[-1], "--out", "out4")
    said = " ".join(done.output.split())
    assert "It is no model for 'equipoise predict': its network is none of equipoise's" in said, done.output
    assert not (place / "out4" / "model" / "model.json").exists(), "that of the earlier network"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gone.pt", *HOW[1:]), "gone.pt is not a file"),
        (HOW[:3], "say which network"),
        (HOW[:5], "--size"),
        ((*HOW, "--metric", "f1"), "no metric is named 'f1'"),
        ((*HOW, "--prior", "0.5,0.5"), "10 shares"),
        ((*HOW, "--prior", "0=0.5,1=0.5"), "it lacks '2'"),
        ((*HOW, "--train-counts", "1,2"), "10 whole numbers"),
        ((*HOW[:7], "--mean", "0"), "--mean and --std go together"),
        ((*HOW, "--resize", "4"), "size ≤ resize"),
        ((*HOW, "--classes", "net.pt"), "cannot be read as a class in each line"),
        (("net.pt", "--data", "gone", *HOW[3:]), "gone is not a folder"),
        (("net.pt", "--data", "photos/0", *HOW[3:]), "two of them at least"),
    ],
)
def test_mistakes_are_told(place, monkeypatch, arguments, message):
    done = run_here(place, monkeypatch, *arguments, "--out", "never")
    assert isinstance(done.exception, EquipoiseError) and message in str(done.exception), done.output
    assert not (place / "never").exists()


def test_counts_and_names_as_text(tmp_path):
    for name, n in (("a", 3), ("b", 1)):
        (tmp_path / name).mkdir()
        for i in range(n):
            (tmp_path / name / f"{i}.png").touch()
    assert counts(str(tmp_path), ["b", "a", "none"]) == [1, 3, 0]
    (tmp_path / "classes.txt").write_text("a\n\nb\na\n")
    with pytest.raises(EquipoiseError, match="once"):
        class_names(tmp_path / "classes.txt")
