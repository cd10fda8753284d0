"""Which runs are trained for longer, at what cost, and that they are written down."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from equipoise.store import Convergence, Record, Store
from equipoise.study import How, Listener, Study, convergence

CPU = torch.device("cpu")
PLAIN = {
    "baseline": "plain",
    "seeds": [7, 3, 5],
    "task": {"name": "blobs", "n_max": 60},
    "base": {"model": "cnn_small(width=4)", "epochs": 4, "warmup": 1},
    "methods": {"plain": {}, "good": {"loss": "focal"}, "bad": {"lr": 0.5}, "adjusted": {"posthoc": "logit_adjust"}},
}
SCORES = {"plain": 0.5, "good": 0.7, "bad": 0.4, "adjusted": 0.6}


def put(store: Store, recipe, score: float, state: str = "finished") -> None:
    record = Record(
        recipe.key, recipe.to_dict(), state, ("a", "b"), (9, 5), "data", 10, 1.0,
        "2026-01-01T00:00:00+00:00", {}, "CPU", metrics={"valid_balanced_accuracy": score},
    )  # fmt: skip
    outputs = {"logits": np.eye(2, dtype=np.float32), "labels": np.arange(2)}
    store.put(record, {"valid": outputs, "test": outputs} if state == "finished" else {})


@pytest.fixture
def asked(monkeypatch):
    """The runs that were asked for; no more is done with them."""
    found = []
    monkeypatch.setattr(convergence, "do_runs", lambda runs, *_: found.extend(runs))
    return found


def study_in(store: Store, **changes) -> Study:
    study = Study.from_dict(PLAIN | changes)
    for name, recipe in study.recipes():
        put(store, recipe, SCORES[name])
    return study


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "out").create()


def longer(study: Study, name: str, seed: int):
    recipe = study.methods[name]
    return name, replace(recipe, seed=seed, plan=replace(recipe.plan, epochs=8))


def test_the_baseline_and_the_best_are_trained_twice_as_long(store, asked):
    study = study_in(store)
    convergence.train_for_longer(study, store, How(CPU, pilot=True), Listener())
    assert asked == [longer(study, "plain", 7), longer(study, "good", 7)]
    assert asked[0][1].plan.warmup == 1
    found = store.document(Convergence)
    assert [(run.method, run.seed, run.epochs, run.longer) for run in found.runs] == [
        ("plain", 7, 4, 8),
        ("good", 7, 4, 8),
    ]
    assert [run.key for run in found.runs] == [recipe.key for _, recipe in asked]
    assert not {run.key for run in found.runs} & set(study.document().keys)  # no part of the comparison
    assert found.reason == ""


def test_what_is_done_is_not_done_again(store, asked):
    study = study_in(store)
    for name in ("plain", "good"):
        put(store, longer(study, name, 7)[1], 0.9)
    convergence.train_for_longer(study, store, How(CPU, pilot=True), Listener())
    assert not asked and len(store.document(Convergence).runs) == 2


# trainings of plain, good and bad (adjusted costs none), 4 epochs each; a longer run has 8
@pytest.mark.parametrize(
    ("seeds", "methods"),
    [
        (3, []),  # 8 of 36 epochs
        (4, ["plain"]),  # 8 of 48
        (6, ["plain"]),  # 16 of 72 would be too many
        (7, ["plain", "good"]),  # 16 of 84
    ],
)
def test_a_fifth_of_the_study_is_spent_unasked(store, asked, seeds, methods):
    study = study_in(store, seeds=seeds)
    convergence.train_for_longer(study, store, How(CPU), Listener())
    assert [name for name, _ in asked] == methods
    reason = store.document(Convergence).reason
    assert reason == ("" if methods else "a longer training costs 22 % of the study; --pilot makes it")


def test_a_correction_of_the_baseline_costs_no_training_of_its_own(store, asked, monkeypatch):
    monkeypatch.setitem(SCORES, "adjusted", 0.9)
    study = study_in(store, seeds=4)
    convergence.train_for_longer(study, store, How(CPU), Listener())
    assert [name for name, _ in asked] == ["plain", "adjusted"]


def test_a_seed_that_the_baseline_has_finished_is_taken(store, asked):
    study = Study.from_dict(PLAIN)
    for name, recipe in study.recipes():
        put(store, recipe, SCORES[name], "failed" if (name, recipe.seed) == ("plain", 7) else "finished")
    convergence.train_for_longer(study, store, How(CPU, pilot=True), Listener())
    assert {recipe.seed for _, recipe in asked} == {3}


def test_without_a_baseline_there_is_nothing_to_tell(store, asked):
    convergence.train_for_longer(Study.from_dict(PLAIN), store, How(CPU, pilot=True), Listener())
    assert not asked and store.document(Convergence) == Convergence(reason="no run of the baseline has finished")


def test_a_study_can_accept_short_training():
    study = Study.from_dict(PLAIN | {"accept_short_training": True})
    assert study.document().accept_short_training and study.to_dict()["accept_short_training"] is True
    assert "accept_short_training" not in Study.from_dict(PLAIN).to_dict()
    with pytest.raises(ValueError, match="accept_short_training"):
        Study.from_dict(PLAIN | {"accept_short_training": "yes"})
