"""Every method of the registry trains end to end on long-tailed digits; a table of what it reached is printed."""

import numpy as np
import pytest
import torch

from equipoise.analysis import evaluate
from equipoise.core import cards
from equipoise.store import Store
from equipoise.study import How
from equipoise.study.run.job import do, jobs_of
from equipoise.train import DIALS, Recipe

TASK = {"name": "digits", "imbalance": "long_tailed", "ratio": 20}
CHANCE = 0.1
# where a default is meant for large colour images
SUITED = {
    "squared_error": "squared_error(kappa=8.0, magnitude=0.83)",
    "crop_flip": "crop_flip(pad=1, flip=False)",
    "autoaugment": "autoaugment(pad=1, flip=False)",
}


def reached(tmp_path, options, seed=0, epochs=20):
    """Test balanced accuracy of a recipe, through the whole path: train, store, correct, read back."""
    recipe = Recipe.make({"model": "cnn_small", "epochs": epochs, **options}, TASK, seed)
    store = Store(tmp_path).create()
    for job in jobs_of([recipe]):
        assert do(job, store, How(torch.device("cpu")), lambda epoch, curves: None, lambda: False)
    record = store.get(recipe.key)
    assert record.finished, record.error
    test = store.open_test(recipe.key)
    return evaluate(test["logits"], test["labels"], np.array(record.class_counts))["balanced_accuracy"]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in DIALS if kind != "model"])
def test_every_method_trains(kind, tmp_path, capsys):
    rows = {entry.name: reached(tmp_path, {kind: SUITED.get(entry.name, entry.name)}) for entry in cards(kind)}
    with capsys.disabled():
        print(f"\n{kind} on long-tailed digits, one seed, 20 epochs: balanced accuracy")
        for name, value in sorted(rows.items(), key=lambda row: -row[1]):
            print(f"  {name:<20} {100 * value:5.1f} %")
    assert rows and min(rows.values()) > 3 * CHANCE


@pytest.mark.slow
def test_cross_entropy_loses_where_it_must(tmp_path):
    methods = {
        "cross_entropy": {},
        "logit_adjust": {"posthoc": "logit_adjust"},
        "balanced_softmax": {"loss": "balanced_softmax"},
        "class_balanced": {"weighting": "effective_number(beta=0.999)"},
    }
    means = {
        name: np.mean([reached(tmp_path, options, seed, epochs=30) for seed in range(3)])
        for name, options in methods.items()
    }
    assert all(means[name] > means["cross_entropy"] for name in methods if name != "cross_entropy"), means
