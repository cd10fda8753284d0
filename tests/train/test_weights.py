"""A training that starts from a file of weights: its key, its start, and what the study says about it."""

import shutil
from dataclasses import replace

import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.data import load_task
from equipoise.models import create_model
from equipoise.study import Study
from equipoise.study.tune.space import options_of
from equipoise.train import Mistakes, Recipe, Run

MODEL = "cnn_small(width=4)"
TASK = {"name": "digits", "n_max": 20}
CPU = torch.device("cpu")


@pytest.fixture
def file(tmp_path):
    torch.manual_seed(3)
    torch.save(create_model(MODEL, 10, in_channels=1).state_dict(), tmp_path / "start.pt")
    return tmp_path / "start.pt"


def recipe(file=None, **options):
    return Recipe.make({"model": MODEL, "epochs": 1, **({"weights": str(file)} if file else {}), **options}, TASK)


def test_what_the_file_holds_is_part_of_the_key_and_its_place_is_not(file, tmp_path):
    shutil.copy(file, tmp_path / "copy.pt")
    torch.save(create_model(MODEL, 10, in_channels=1).state_dict(), tmp_path / "other.pt")
    keys = {name: recipe(tmp_path / name).key for name in ("start.pt", "copy.pt", "other.pt")}
    assert keys["start.pt"] == keys["copy.pt"]
    assert len({*keys.values(), recipe().key}) == 3


def test_a_recipe_survives_being_written_down(file):
    chosen = recipe(file)
    assert Recipe.from_dict(chosen.to_dict()) == chosen
    assert replace(Recipe.make(options_of(chosen)), task=chosen.task) == chosen
    file.unlink()
    assert Recipe.from_dict(chosen.to_dict()).key == chosen.key  # a report needs no file


@pytest.mark.parametrize("options", [{}, {"ema": 0.9}, {"stage": "crt"}, {"procedure": "bbn"}])
def test_a_run_starts_from_the_file(file, options):
    chosen, task = recipe(file, **options), load_task(**TASK)
    parent = Run(chosen.parent, task, CPU).network.state_dict() if chosen.parent else None
    state = Run(chosen, task, CPU, parent).evaluated.state_dict()
    saved = torch.load(file)
    assert torch.equal(state["stem.0.weight"], saved["stem.0.weight"])
    same_head = state["head.weight"].shape == saved["head.weight"].shape and torch.equal(
        state["head.weight"], saved["head.weight"]
    )
    assert same_head == (not {"stage", "procedure"} & options.keys())


def test_a_trained_network_needs_no_file(file):
    chosen = recipe(file)
    file.unlink()
    Run(chosen, load_task(**TASK), CPU, from_file=False)
    with pytest.raises(EquipoiseError, match="there is no file"):
        Run(chosen, load_task(**TASK), CPU)


def test_mistakes_are_told_before_anything_is_trained(file, tmp_path):
    with pytest.raises(Mistakes, match=r"weights: there is no file .*none\.pt"):
        recipe(tmp_path / "none.pt")
    torch.save({"stem.0.weight": torch.zeros(2, 2)}, file)
    with pytest.raises(EquipoiseError, match=r"does not fit SmallCNN: the file lacks .* other shapes have stem"):
        recipe(file).check(load_task(**TASK))


def test_a_fresh_head_is_said_in_words(tmp_path):
    torch.save(create_model(MODEL, 7, in_channels=1).state_dict(), tmp_path / "seven.pt")
    task = load_task(**TASK)
    assert "head is drawn anew" in recipe(tmp_path / "seven.pt").head_note(task)
    assert recipe().head_note(task) is None
    Run(recipe(tmp_path / "seven.pt"), task, CPU)  # which does not warn again


def test_a_file_beside_the_study_is_found(file, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "study.toml").write_text(
        'baseline = "plain"\n[task]\nname = "digits"\n[base]\nmodel = "cnn_small(width=4)"\n[methods.plain]\n'
        '[methods.started]\nweights = "start.pt"\n'
    )
    methods = Study.from_toml(tmp_path / "study.toml").methods
    assert methods["started"].plan.weights.startswith(f"{file.resolve()}#")
    assert methods["plain"].plan.weights is None
