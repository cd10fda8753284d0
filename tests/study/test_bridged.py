"""A study of another library's networks, from the file to the report."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.store import Store
from equipoise.study import Study
from equipoise.train import Mistakes, Recipe

# a library with timm's face, so that the test needs no timm; found by the workers too
TIMM = """
from torch import nn

def list_models():
    return ["small"]

def create_model(name, num_classes, in_chans, pretrained=False):
    network = nn.Sequential()
    network.add_module("conv1", nn.Conv2d(in_chans, 8, 3, padding=1, bias=False))
    network.add_module("bn1", nn.BatchNorm2d(8))
    network.add_module("act1", nn.ReLU(inplace=True))
    network.add_module("layer1", nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(inplace=True)))
    network.add_module("pool", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()))
    network.add_module("fc", nn.Linear(16, num_classes))
    if pretrained:
        nn.init.constant_(network.conv1.weight, 0.125)
    return network
"""
STUDY = """
baseline = "plain"
seeds = 1
task = {name = "digits", imbalance = "long_tailed", ratio = 10, n_max = 40}
base = {model = "timm/small", epochs = 2}
methods.plain = {}
methods.pretrained = {model = "timm/small(pretrained=True)"}
methods.ghost = {norm = "ghost(ghost_size=8)"}
methods.cosine = {head = "cosine", loss = "ldam"}
methods.weakened = {mix = "mfw(site='body.layer1.0')"}
methods.mixed = {mix = "mixup"}
methods.crt = {stage = "crt"}
methods.tau = {posthoc = "tau_norm"}
"""


@pytest.fixture
def timm(tmp_path, monkeypatch):
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "timm.py").write_text(TIMM)
    monkeypatch.syspath_prepend(tmp_path / "library")
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    yield tmp_path / "library"
    sys.modules.pop("timm", None)


def equipoise(*arguments, library, folder):
    path = os.pathsep.join([str(library), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "equipoise", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def test_every_dial_turns_on_another_librarys_network(timm, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    ran = equipoise("run", "study.toml", "--out", "runs", library=timm, folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    records = {
        name: Store(tmp_path / "runs").get(recipe.key)
        for name, recipe in Study.from_toml(tmp_path / "study.toml").recipes()
    }
    assert len(records) == 8
    for name, record in records.items():
        assert record is not None and record.error is None, name
    written = equipoise("report", "runs", library=timm, folder=tmp_path)
    assert written.returncode == 0, written.stdout + written.stderr


def test_equal_networks_have_equal_keys(timm):
    texts = ("timm/small(pretrained=True)", "timm/small( pretrained = True )")
    assert len({Recipe.make({"model": text}, {"name": "digits"}).key for text in texts}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"timm/small"', '"timm/smal"'), "Did you mean 'small'"),
        (("site='body.layer1.0'", "site='body.layer'"), "no site 'body.layer'. Did you mean 'body.layer1'"),
        (("mfw(site='body.layer1.0')", "mfw"), "timm/small has no site 'stage1'"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(timm, tmp_path, change, message):
    (tmp_path / "study.toml").write_text(STUDY.replace(*change))
    with pytest.raises(Mistakes, match=message):
        Study.from_toml(tmp_path / "study.toml")
