"""The way in from Python: a study without a file, and what its results hold."""

import subprocess
import sys

import pytest
import torch

import equipoise
from equipoise import EquipoiseError, Results
from equipoise.study import Event, Listener, Watch

STUDY = {
    "name": "small",
    "baseline": "plain",
    "seeds": 2,
    "task": {"name": "digits", "n_max": 30},
    "base": {"model": "cnn_small(width=4)", "epochs": 1, "batch_size": 64},
    "methods": {"plain": {}, "focal": {"loss": "focal"}, "adjusted": {"posthoc": "logit_adjust"}},
}


class Noting(Listener):
    """Writes down all that it is told."""

    def __init__(self):
        self.said, self.events = [], []

    def say(self, text, tone="plain"):
        self.said.append(text)

    def runs(self, names, total, done):
        noting = self

        class Notes(Watch):
            def event(self, event: Event, store):
                noting.events.append(event.what)

            def __enter__(self):
                return self

            def __exit__(self, *exception): ...

        return Notes()


@pytest.fixture(scope="module")
def listener():
    return Noting()


@pytest.fixture(scope="module")
def results(tmp_path_factory, listener):
    return equipoise.run(STUDY, tmp_path_factory.mktemp("runs"), device="cpu", workers=1, listener=listener)


def test_a_listener_is_told_what_happens(results, listener):
    assert listener.events.count("done") == 4 and "epoch" in listener.events
    assert any("4 trainings to do" in text for text in listener.said)


def test_rows_and_verdict(results):
    assert [row["method"] for row in results.rows] == [m.name for m in results.collected.methods]
    assert {row["standing"] for row in results.rows} <= {"baseline", "not separable"}
    assert all(row["n"] == 2 and row["low"] <= row["mean"] <= row["high"] for row in results.rows)
    assert "No method is shown to beat plain, which reaches" in results.verdict.sentences()[0]
    assert "No method is shown" in repr(results)


def test_per_class_and_curves(results):
    classes = results.per_class()["focal"]
    assert list(classes) == list(results.collected.class_names) and all(e.n == 2 for e in classes.values())
    assert len(results.curves()["plain"]["train_loss"]) == 1


def test_predictions_are_those_of_the_network(results):
    said = results.predictions("focal", seed=1)
    assert said["logits"].shape == (len(said["labels"]), 10)
    network = results.network("focal", seed=1, device="cpu")
    task = equipoise.load_task("digits", n_max=30, seed=1)
    with torch.no_grad():
        logits = network(task.test.images)
    stored = torch.from_numpy(said["logits"]).float()  # in half precision, the largest of a row at 0
    torch.testing.assert_close(logits.log_softmax(1), stored.log_softmax(1), rtol=0, atol=2e-3)
    assert not network.training


def test_what_is_not_there_is_told(results):
    with pytest.raises(EquipoiseError, match="'focall'.*focal"):
        results.predictions("focall", 0)
    with pytest.raises(EquipoiseError, match="no finished run with seed 9; finished: 0, 1"):
        results.network("plain", 9)
    with pytest.raises(EquipoiseError, match="leaves the network as it is"):
        results.network("adjusted", 0)


def test_a_table_for_notebooks(results):
    html = results._repr_html_()
    assert html.count("<tr>") == 4 and "focal" in html and "No method is shown" in html


def test_a_frame_or_a_sentence(results):
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(EquipoiseError, match="pip install pandas"):
            results.to_frame()
    else:
        assert list(results.to_frame()["method"]) == [row["method"] for row in results.rows]


def test_the_report_and_the_folder_again(results):
    assert "focal" in results.report().read_text()
    assert Results(results.store.path).rows == results.rows


def test_run_again_does_nothing_new(results):
    again = Noting()
    rows = equipoise.run(STUDY, results.store.path, device="cpu", workers=1, listener=again).rows
    assert rows == results.rows and not again.events and any("already" in text for text in again.said)


def test_a_study_that_has_not_ended_stays_sealed(results, tmp_path):
    longer = equipoise.Study.from_dict({**STUDY, "seeds": 3})
    store = equipoise.store.Store(tmp_path).create()
    store.write_json("study.json", longer.to_dict())
    with pytest.raises(EquipoiseError, match="has not ended"):
        Results(tmp_path)


def test_a_mistake_in_plain_data_is_told():
    with pytest.raises(EquipoiseError, match="not among the methods"):
        equipoise.run({**STUDY, "baseline": "best"})


def test_methods_by_pattern():
    assert "balanced_softmax" in [card.name for card in equipoise.list_methods("*balanced*")]
    assert equipoise.list_methods("no such *") == []


def test_the_names_are_there_and_come_when_asked_for():
    assert set(equipoise.__all__) <= set(dir(equipoise))
    for name in equipoise.__all__:
        assert getattr(equipoise, name) is not None
    code = "import sys, equipoise; print([m for m in sys.modules if m in ('torch', 'rich', 'scipy')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        equipoise.nothing  # noqa: B018
