"""Where the time went: of this call, not of earlier ones."""

import io
import re

import pytest
import torch
from rich.console import Console

from equipoise.store import Store
from equipoise.study import How, Study, jobs_of, print_profile
from equipoise.study.run import profile
from equipoise.study.run.child import Failed
from equipoise.study.run.job import do
from equipoise.train import StepTimes, Stopped

CPU = torch.device("cpu")
PLAIN = {
    "baseline": "plain",
    "seeds": 2,
    "task": {"name": "blobs", "n_max": 40},
    "base": {"model": "cnn_small(width=4)", "epochs": 4, "batch_size": 16},
    "methods": {"plain": {}, "focal": {"loss": "focal"}},
}


@pytest.fixture
def study():
    return Study.from_dict(PLAIN)


@pytest.fixture
def store(tmp_path, study):
    store = Store(tmp_path / "s").create()
    store.write_json("study.json", study.to_dict())
    return store


def train(study, store, seeds, stop=lambda: False):
    for job in jobs_of(recipe for _, recipe in study.recipes() if recipe.seed in seeds):
        do(job, store, How(CPU), lambda *_: None, stop)


def closing_line(store, before, monkeypatch, answer):
    monkeypatch.setattr(profile, "ask", answer)
    console = Console(width=200, record=True, file=io.StringIO())
    print_profile(store, CPU, console, 10.0, before)
    return console.export_text()


def test_only_what_this_call_trained_counts(study, store, monkeypatch):
    train(study, store, [0])
    before = {record.key for record in store.records()}
    train(study, store, [1])
    times = StepTimes(0.1, 0.2, 0.3, 0.1)
    images = sum(r.timing["images"] for r in store.records() if r.key not in before)
    said = closing_line(store, before, monkeypatch, lambda *_: (times, None))
    assert f"In all {images / 10:,.0f} images/s over 10 s" in said and "2 trainings" in said
    everything = {record.key for record in store.records()}
    assert "In all" not in closing_line(store, everything, monkeypatch, lambda *_: (times, None))


def test_a_run_taken_up_again_counts_the_epochs_of_now(study, store):
    stops = iter([False, False, True])
    with pytest.raises(Stopped):
        train(study, store, [0], lambda: next(stops))
    train(study, store, [0])
    first, second = (store.get(recipe.key).timing["images"] for _, recipe in study.recipes() if recipe.seed == 0)
    assert first == second / 4


def test_steps_that_cannot_be_timed_are_left_out(study, store, monkeypatch):
    def fails(*_):
        raise Failed("killed")

    train(study, store, [0])
    said = closing_line(store, (), monkeypatch, fails)
    assert re.search(r"plain +[\d,]+ +–", said) and "2 trainings" in said
