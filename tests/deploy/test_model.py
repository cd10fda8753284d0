"""A model out of its study says what the run said, and is the same after a folder; damage is answered by name."""

import json

import pytest
import torch

from equipoise import EquipoiseError, TrainedModel
from equipoise.deploy import Classifier, portable_recipe
from equipoise.front.model import median_run
from equipoise.store import Damaged
from equipoise.store.checked_json import from_bytes, to_bytes

from .conftest import METHODS


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_what_its_run_said(results, task, method):
    model = results.model(method, seed=0, device="cpu")
    stored = torch.from_numpy(results.predictions(method, seed=0)["logits"])  # in half precision
    with torch.no_grad():
        logits = model.classifier(task.test.images)
    torch.testing.assert_close(logits.softmax(1), stored.softmax(1), rtol=0, atol=5e-3)
    assert 0.01 < model.description.calibration.temperature < 100


def test_what_a_correction_chose_is_kept(results):
    assert set(results.model("adjusted").description.fitted) == {"tau_"}
    assert set(results.model("temperature").description.fitted) == {"temperature_"}
    assert results.model("weighing").description.fitted == {"alpha_": 0.3}
    assert results.model("plain").description.fitted == {}


def test_a_head_on_a_frozen_body_takes_the_body_along(results, task, tmp_path):
    model = results.model("head", seed=0, device="cpu")
    assert "body.stem.0.weight" in model.weights() and "body.pt#" in model.description.licence
    again = TrainedModel.load(model.save(tmp_path))
    assert torch.equal(again(task.test.images[:9]), model(task.test.images[:9]))


def test_by_default_the_best_method(results):
    model = TrainedModel.of(results)
    assert model.description.method == results.verdict.methods[0].name
    assert model.description.seed == 0 and "1 classes" not in repr(model)
    with pytest.raises(EquipoiseError, match="no finished run with seed 7"):
        results.model("plain", seed=7)


class _Run:
    finished = True

    def __init__(self, seed, score):
        self.seed, self.record = seed, type("Record", (), {"metrics": {"valid_nll": score, "valid_accuracy": score}})


def test_the_seed_is_the_median_of_the_validation_scores():
    """Of four, the lesser of the middle two, whichever way the metric points."""
    method = type("Method", (), {"name": "m", "runs": [_Run(s, v) for s, v in enumerate([0.9, 0.3, 0.8, 0.4])]})
    assert median_run(method, "accuracy").seed == 3
    assert median_run(method, "nll").seed == 2


def test_a_folder_holds_all_of_it(model, task, tmp_path):
    model.save(tmp_path / "model")
    again = TrainedModel.load(tmp_path / "model")
    assert again.description == model.description
    assert torch.equal(again(task.test.images[:40]), model(task.test.images[:40]))
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["README.md", "model.json", "weights.safetensors"]


def test_the_card_in_plain_words(model, tmp_path):
    card = (model.save(tmp_path) / "README.md").read_text()
    for words in ("10 classes", "balanced accuracy", "1 training", "validation images", "equipoise predict", "| 9 | "):
        assert words in card
    assert model.description.verdict in card


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_damage_is_answered_by_name(model, tmp_path, name):
    path = model.save(tmp_path) / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(Damaged, match=f"{name} is damaged: its checksum does not match"):
        TrainedModel.load(tmp_path)
    path.unlink()
    with pytest.raises(EquipoiseError, match=name):
        TrainedModel.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"class_names": "0123"}, "a list"),
        ({"class_counts": [1, 2]}, "10 classes have 2"),
        ({"schema": 99}, "newer version"),
        ({"preprocessing": {}}, "preprocessing: frame, channels, mean, std are not in it"),
        ({"calibration": {"temperature": -1, "removed": 0, "images": 0}}, "temperature"),
    ],
)
def test_a_description_that_is_none_is_told(model, tmp_path, change, said):
    path = model.save(tmp_path) / "model.json"
    path.write_bytes(to_bytes({**from_bytes(path.read_bytes()), **change}))
    with pytest.raises(EquipoiseError, match=said):
        TrainedModel.load(tmp_path)


def test_the_wrong_images_are_told(model):
    with pytest.raises(EquipoiseError, match=r"\(N, 1, 8, 8\), got torch.uint8 of shape \(2, 3, 8, 8\)"):
        model(torch.zeros(2, 3, 8, 8, dtype=torch.uint8))


def test_no_place_of_this_machine_leaves_it():
    recipe = {
        "task": {"name": "folder(path='/home/me/photos', size=64, groups='/home/me/groups.csv')"},
        "plan": {"weights": "/home/me/weights/resnet.safetensors#0123456789abcdef"},
    }
    said = json.dumps(portable_recipe(recipe))
    assert "/home" not in said and "photos" in said and "resnet.safetensors#0123456789abcdef" in said


def test_a_model_is_ready_to_be_used(model):
    assert isinstance(model.classifier, Classifier) and not model.classifier.training
    assert not any(p.requires_grad for p in model.classifier.parameters())
