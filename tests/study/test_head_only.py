"""A study of heads on the features of one frozen network: trained, recorded, reported and taken out as any other."""

from dataclasses import replace

import pytest
import torch

from equipoise.core.files import features_folder
from equipoise.models import create_model
from equipoise.report import collect
from equipoise.store import Store
from equipoise.study import How, Listener, Study, analyze_study, jobs_of, trained_network
from equipoise.study.binding import bind
from equipoise.study.plan.cost import looking_seconds, measured_seconds
from equipoise.study.probe import Asked
from equipoise.study.run.images import look_at_images, task_of
from equipoise.study.run.job import do

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("heads")
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield folder


@pytest.fixture(scope="module")
def study(folder):
    torch.save(create_model("cnn_small(width=4)", 5, in_channels=1).state_dict(), folder / "body.pt")
    base = {"model": "cnn_small(width=4)", "weights": str(folder / "body.pt"), "train": "head", "epochs": 2}
    methods = {
        "plain": {},
        "cosine": {"head": "cosine", "loss": "ldam"},
        "scaled": {"posthoc": "tau_norm"},
    }
    plain = {"baseline": "plain", "seeds": 1, "task": {"name": "digits", "n_max": 20}, "base": base, "methods": methods}
    return Study.from_dict(plain)


@pytest.fixture(scope="module")
def store(folder, study):
    store = Store(folder / "study").create()
    store.write_json("study.json", study.to_dict())
    for job in jobs_of(recipe for _, recipe in study.recipes()):
        do(job, store, How(CPU, watch_classes=True), lambda epoch, curves: None, lambda: False)
    return store


def test_every_run_is_recorded_with_the_head_alone(store, study):
    records = store.records()
    assert len(records) == 3 and all(record.finished for record in records), [record.error for record in records]
    recipe = study.methods["plain"]
    assert len(store.weights(recipe.key)) < 10_000 and store.get(recipe.key).parameters > 0
    assert len(list(features_folder().iterdir())) == 2  # train and test: seeds share them
    assert {row.name for row in collect(store).methods} == set(study.methods)


def test_a_run_gives_a_network_for_images(store, study):
    recipe = study.methods["plain"]
    test = task_of(recipe, store, CPU).test
    with torch.no_grad():
        logits = trained_network(store, recipe.key, CPU)(test.dense().images)
    stored = torch.from_numpy(store.test_sealed(recipe.key)["logits"])
    torch.testing.assert_close(logits.softmax(1), stored.softmax(1), rtol=0, atol=2e-3)


def test_it_can_be_analyzed_with_images_that_nobody_embedded(store):
    found = analyze_study(store, Asked(images=20, corruptions=True, transfer=("blobs",)), CPU, Listener())
    assert found.corruptions is not None and found.transfer


def test_a_study_says_what_it_does_and_what_it_costs(study, folder):
    said = []
    bind(study, Store(folder / "other"), said.append)
    assert any("looks at every image once, without augmentation" in line for line in said)
    assert 0 < measured_seconds(study.methods["plain"], CPU) < 60
    assert looking_seconds(study.methods["plain"], CPU) == 0, "the features are kept"


def test_progress_is_told_where_images_are_looked_at(study, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    told = []
    assert 0 < looking_seconds(study.methods["plain"], CPU) < 60
    for _ in range(2):
        look_at_images(study.methods["plain"], Store(tmp_path / "runs"), CPU, lambda *news: told.append(news))
    stage, done, total = told[-1]
    assert (stage, done) == ("describing images", total)
    assert sum(done == total for _, done, total in told) == 2, "train and test, and nothing when asked again"


def test_images_are_looked_at_before_anything_is_trained(study, store, monkeypatch):
    monkeypatch.setattr("equipoise.study.run.images.embedded", lambda *args, **options: 1 / 0)
    recipe = study.methods["plain"]
    with pytest.raises(ZeroDivisionError):
        look_at_images(replace(recipe, seed=99), store, CPU)
