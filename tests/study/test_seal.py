"""The test set is sealed: training, validation and corrections come to the same without it, or with another one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from equipoise.data import Split
from equipoise.imbalance.posthoc.logit_adjust import LogitAdjust
from equipoise.imbalance.posthoc.temperature import Temperature
from equipoise.norms.example_weighing.posthoc import ExampleWeighing
from equipoise.report import collect
from equipoise.store import Store
from equipoise.study import How, jobs_of
from equipoise.study.run import images as images_file
from equipoise.study.run import job as jobs_file

from .blobs import blobs_study

CPU = torch.device("cpu")
METHODS = {
    "plain": {},
    "averaged": {"ema": 0.9},
    "mixed": {"mix": "mfw(alpha=1.0)", "weighting": "effective_number(beta=0.99, start=0.5)"},
    "two_branches": {"procedure": "bbn"},
    "retrained": {"stage": "crt"},
    "adjusted": {"posthoc": "logit_adjust(tau=None)"},
    "scaled": {"posthoc": "temperature"},
    "weighed": {"posthoc": "example_weighing"},
}


@pytest.fixture(scope="module")
def study():
    return blobs_study(METHODS, epochs=2)


def run_all(study, path):
    store = Store(path).create()
    for job in jobs_of(recipe for _, recipe in study.recipes()):
        assert jobs_file.do(job, store, How(CPU), lambda *_: None, lambda: False)
    for name, recipe in study.recipes():
        assert store.get(recipe.key).finished, f"{name}: {store.get(recipe.key).error}"
    return store


class Sealed(Split):
    """A split that cannot be read while `Sealed.shut`."""

    shut = False

    def __getattribute__(self, name):
        if Sealed.shut and name in ("images", "labels"):
            raise AssertionError("the test set was read")
        return object.__getattribute__(self, name)

    def to(self, device):
        return self


def with_test(monkeypatch, make):
    """Let the runs of this test see another test set."""
    load = images_file.load_task
    images_file._task_on.cache_clear()

    def changed(*args, **options):
        task = load(*args, **options).in_memory()
        return replace(task, test=make(task.test))

    monkeypatch.setattr(images_file, "load_task", changed)


@pytest.fixture(autouse=True)
def _forget_tasks():
    yield
    Sealed.shut = False
    images_file._task_on.cache_clear()


def test_training_and_fitting_cannot_read_the_test_set(study, tmp_path, monkeypatch):
    """Shut from the first epoch to the last, and while post-hoc methods are fitted, no run notices."""
    with_test(monkeypatch, lambda test: Sealed(test.images, test.labels))
    shut_during = []

    def shutting(function):
        def wrapped(*args, **options):
            Sealed.shut = True
            shut_during.append(function.__name__)
            try:
                return function(*args, **options)
            finally:
                Sealed.shut = False

        return wrapped

    monkeypatch.setattr(jobs_file, "fit_one", shutting(jobs_file.fit_one))
    for posthoc, method in ((Temperature, "fit"), (LogitAdjust, "fit"), (ExampleWeighing, "change")):
        monkeypatch.setattr(posthoc, method, shutting(getattr(posthoc, method)))
    run_all(study, tmp_path / "s")
    assert Counter(shut_during) == {"fit_one": 5, "fit": 2, "change": 1}


def test_the_seal_of_this_test_holds():
    split = Sealed(torch.zeros(2), torch.zeros(2))
    assert len(split.labels) == 2
    Sealed.shut = True
    with pytest.raises(AssertionError, match="was read"):
        len(split)


def test_another_test_set_changes_nothing_but_its_own_outputs(study, tmp_path, monkeypatch):
    first = run_all(study, tmp_path / "first")
    with_test(monkeypatch, lambda test: Split(255 - test.images[:7], (test.labels[:7] + 1) % 3))
    second = run_all(study, tmp_path / "second")
    for name, recipe in study.recipes():
        a, b = first.get(recipe.key), second.get(recipe.key)
        np.testing.assert_equal(a.metrics, b.metrics)  # nan is nan
        np.testing.assert_equal(a.curves, b.curves)
        assert not any("test" in key for key in (*a.metrics, *a.curves)), name
        for array, values in first.valid(recipe.key).items():
            np.testing.assert_array_equal(values, second.valid(recipe.key)[array])
        if recipe.posthoc is None:
            assert first.weights(recipe.key) == second.weights(recipe.key)
        assert len(second.test_sealed(recipe.key)["labels"]) == 7
    assert not (first.path / "opened.json").exists() and not (second.path / "opened.json").exists()


def test_what_is_recorded_while_training_is_of_the_training_set_but_for_a_file_that_is_sealed_too(
    study, tmp_path, monkeypatch
):
    def watched(path):
        store = Store(path).create()
        jobs_file.do(jobs_of([recipe])[0], store, How(CPU, watch_classes=True), lambda *_: None, lambda: False)
        return store

    recipe = study.methods["plain"]
    first = watched(tmp_path / "first")
    with_test(monkeypatch, lambda test: Split(255 - test.images, test.labels))
    second = watched(tmp_path / "second")
    seen = first.progress(recipe.key)
    assert seen.keys() == second.progress(recipe.key).keys()
    for name, values in seen.items():
        np.testing.assert_array_equal(values, second.progress(recipe.key)[name], err_msg=name)
    assert first.opened() is None and second.opened() is None
    deviation = [store.open_progress(recipe.key)["feature_deviation"] for store in (first, second)]
    assert not np.allclose(*deviation) and first.opened().keys == {recipe.key}


def test_every_opening_is_written_down_once(study, tmp_path):
    pair = replace(study, methods={name: study.methods[name] for name in ("plain", "averaged")})
    store = run_all(pair, tmp_path / "s")
    store.write_json("study.json", pair.to_dict())
    collect(store)
    (opening,) = store.read_json("opened.json")["openings"]
    assert not opening["peek"] and len(opening["keys"]) == 2 and opening["by_version"]
    collect(store)
    assert len(store.read_json("opened.json")["openings"]) == 1
    # a study that asks for one run more is in the middle: what is seen of it now was seen too early
    store.write_json("study.json", replace(pair, seeds=(0, 1)).to_dict())
    later = replace(study.methods["plain"], seed=1)
    jobs_file.do(jobs_of([later])[0], store, How(CPU), lambda *_: None, lambda: False)
    collect(store)
    openings = store.read_json("opened.json")["openings"]
    assert [(o["peek"], o["keys"]) for o in openings[1:]] == [(True, [later.key])]
