"""A study that was really trained, if briefly: three methods and three seeds on a few digits."""

import shutil

import pytest
import torch

from equipoise.store import Analysis, Store
from equipoise.study import Asked, How, Listener, Study, analyze_study, jobs_of
from equipoise.study.probe.subjects import subjects_of
from equipoise.study.run.job import do

CPU = torch.device("cpu")
STUDY = {
    "question": "On a few digits, what helps?",
    "baseline": "plain",
    "seeds": 3,
    "task": {"name": "digits", "imbalance": "long_tailed", "ratio": 5, "n_max": 40},
    "base": {"model": "cnn_small(width=4)", "epochs": 2, "batch_size": 32},
    "methods": {
        "plain": {},
        "weighted": {"weighting": "effective_number(beta=0.99)"},
        "weighing": {"posthoc": "example_weighing"},
    },
}


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The study with all its runs, not analyzed."""
    study = Study.from_dict(STUDY)
    store = Store(tmp_path_factory.mktemp("trained") / "study").create()
    store.write_json("study.json", study.to_dict())
    for job in jobs_of(recipe for _, recipe in study.recipes()):
        do(job, store, How(CPU), lambda epoch, curves: None, lambda: False)
    return store


@pytest.fixture
def store(trained, tmp_path):
    return Store(shutil.copytree(trained.path, tmp_path / "study"))


@pytest.fixture(scope="session")
def analyzed(trained, run, tmp_path_factory):
    """A copy that was analyzed with everything, and what was found."""
    store = Store(shutil.copytree(trained.path, tmp_path_factory.mktemp("analyzed") / "study"))
    asked = Asked(images=200, transfer=("blobs",), corruptions=True)
    return store, run(store, asked)


@pytest.fixture(scope="session")
def run():
    """A function that analyzes a store and gives what was found, as the file has it."""

    def analyzed_now(store, asked=None, **options):
        found = analyze_study(store, asked or Asked(images=200), CPU, Listener(), **options)
        assert store.document(Analysis) == found
        return store.read_json("analysis.json")

    return analyzed_now


@pytest.fixture(scope="session")
def runs_of():
    return lambda store, method: [s for s in subjects_of(store) if s.method == method]
