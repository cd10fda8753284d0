"""Every preset is a recipe, and means what its paper says."""

import pytest

from equipoise.core import EquipoiseError
from equipoise.study import PRESETS, Study, expand_preset
from equipoise.train import Mistakes, Recipe


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
def test_every_preset_is_a_recipe(preset):
    Recipe.make({"model": "cnn_small", "epochs": 30, **preset.options}, {"name": "digits"})


def test_decay_of_the_objectives_is_lambda_over_eta():
    softmax = PRESETS["softmax (CIFAR-10)"].options
    assert softmax["lr"] == pytest.approx(10**-0.75) and softmax["weight_decay"] == pytest.approx(1e-3)
    cosine = PRESETS["cosine softmax (CIFAR-100)"].options
    assert cosine["lr"] == pytest.approx(0.01) and cosine["weight_decay"] == pytest.approx(10**-1.75)
    assert len([name for name in PRESETS if name.endswith("(CIFAR-10)")]) == 9


def test_each_objective_on_imagenet_stops_at_its_own_epoch():
    epochs = {  # table A.1 of the loss functions paper
        "softmax": 146,
        "squared error": 196,
        "dropout": 172,
        "label smoothing": 180,
        "extra final layer L2": 168,
        "logit penalty": 180,
        "logit normalization": 152,
        "cosine softmax": 158,
        "sigmoid": 166,
    }
    study = Study.from_dict(
        {
            "baseline": "softmax",
            "base": {"preset": "training: objectives ImageNet", "model": "cnn_small"},
            "methods": {name: {"preset": f"{name} (ImageNet)"} for name in epochs},
        }
    )
    assert {name: recipe.plan.epochs for name, recipe in study.methods.items()} == epochs


def test_options_beside_a_preset_win():
    assert expand_preset({"preset": "LDAM-DRW", "loss": "focal"}) == {
        "loss": "focal",
        "weighting": "effective_number(beta=0.9999, start=0.8, normalize='batch')",
    }
    assert expand_preset({"epochs": 3}) == {"epochs": 3}
    with pytest.raises(EquipoiseError, match="no preset is named 'LDAM-DWR'. Did you mean 'LDAM-DRW'"):
        expand_preset({"preset": "LDAM-DWR"})


def test_presets_in_a_study():
    plain = {
        "baseline": "a",
        "base": {"preset": "training: class-balanced CIFAR", "epochs": 7},
        "methods": {"a": {}, "b": {"preset": "MFW w/ DRW"}},
    }
    study = Study.from_dict(plain)
    assert study.methods["b"].mix.startswith("mfw(alpha=1.0") and study.methods["b"].plan.epochs == 7
    assert study.methods["a"].plan.schedule == "steps(at=(0.8, 0.9), factor=0.01)"
    with pytest.raises(Mistakes, match=r"\[methods.b\]: no preset is named"):
        Study.from_dict({**plain, "methods": {"a": {}, "b": {"preset": "MWF"}}})
