"""Tuning real images: equal budgets, validation alone, kill and resume."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from equipoise.cli import app
from equipoise.core import EquipoiseError
from equipoise.store import Store
from equipoise.store.underway import waiting_curves
from equipoise.study import How, Listener, Study, tune_study, write_outcome
from equipoise.study.run.job import Job, do
from equipoise.study.tune import tune as driver
from equipoise.train import Mistakes

from .programs.in_this_process import CPU, InThisProcess

STUDY = """
question = "Does each method get the same?"
baseline = "plain"
seeds = 2
task = {name = "digits", imbalance = "step", ratio = 5, n_max = 20, valid = 0.1}
base = {model = "cnn_small(width=4)", epochs = 2}
[tune]
trials = 5
seeds = 2
[methods.plain]
[methods.weighted]
weighting = "effective_number(beta=0.999)"
[methods.adjusted]
posthoc = "logit_adjust(tau=1.0)"
"""


class Noting(InThisProcess):
    """Writes down what is trained."""

    def starting(self, job):
        done.append(job.training.key)


done: list[str] = []


@pytest.fixture
def read(tmp_path):
    def from_text(text=STUDY, **tuning):
        path = tmp_path / "small.toml"
        path.write_text(text)
        study = Study.from_toml(path)
        return replace(study, tuning=replace(study.tuning, **tuning))

    return from_text


@pytest.fixture
def tune(monkeypatch):
    monkeypatch.setattr(driver, "Workers", Noting)
    done.clear()

    def run(study, folder):
        return tune_study(study, Store(folder), How(CPU), Listener())

    return run


@pytest.mark.parametrize("sampler", ["grid", "tpe"])
def test_budgets_are_equal_to_the_trial_and_nothing_is_trained_twice(read, tune, tmp_path, monkeypatch, sampler):
    """The test set's outputs are not even read: whoever tries fails here."""
    for name in ("open_test", "test_sealed"):
        monkeypatch.setattr(Store, name, forbidden)
    study = read(STUDY.partition("[methods.adjusted]")[0], sampler=sampler, trials=6 if sampler == "tpe" else 5)
    outcome = tune(study, tmp_path / "out")
    for method in outcome.methods:
        assert len(method.trials) == study.tuning.trials
        assert len({trial.recipe.key for trial in method.trials}) == study.tuning.trials
        assert all(len(t.score.by_seed) == 2 or t.pruned for t in method.trials)
        assert method.trials[0].point == driver.spaces_of(study)[method.name].start
    assert Counter(done).most_common(1)[0][1] == 1
    write_outcome(outcome, Store(tmp_path / "out"))
    rows = list(csv.DictReader((tmp_path / "out" / "trials.csv").read_text().splitlines()))
    assert Counter(row["method"] for row in rows) == dict.fromkeys(study.methods, study.tuning.trials)
    assert json.loads((tmp_path / "out" / "sensitivity.json").read_text())["methods"][1]["dials"][2]["dial"] == (
        "weighting.beta"
    )
    tuned = Study.from_toml(tmp_path / "out" / "tuned.toml")
    assert all(m.task.test and m.plan.epochs == 2 for m in tuned.methods.values())

    again, before = tune(study, tmp_path / "out"), len(done)
    assert len(done) == before and again == outcome  # all of it is in the store


def test_a_race_leaves_runs_half_way_and_takes_them_up_to_the_same_numbers(read, tune, tmp_path):
    text = STUDY.partition("[methods.adjusted]")[0].replace("epochs = 2", "epochs = 4")
    space = {"lr": [0.01, 0.1], "weight_decay": [5e-4], "weighting.beta": [0.999]}
    study, store = read(text, race=True, trials=3, seeds=(0,), space=space), Store(tmp_path / "out")
    raced = tune(study, store.path)
    again, before = tune(study, store.path), len(done)
    assert again == raced and len(done) == before

    last = replace(raced.methods[0].trials[-1].recipe, seed=0)  # of the second wave: half of it first, then the rest
    assert Counter(done)[last.key] == 1 + store.has(last.key)
    job, curves = Job((last,)), waiting_curves(store, last.key)
    whole = Store(tmp_path / "whole")
    whole.create()
    do(job, whole, How(CPU), lambda epoch, curves: None, lambda: False)
    do(job, store, How(CPU), lambda epoch, curves: None, lambda: False)
    assert store.get(last.key).curves == whole.get(last.key).curves
    assert all(whole.get(last.key).curves[name][:2] == curve for name, curve in curves.items())


def forbidden(*arguments):
    raise AssertionError("somebody tried to read the test set")


def test_no_test_image_reaches_a_trial(read, tune, tmp_path):
    """Post-hoc methods too, whose code passes the test outputs on: there are none."""
    outcome = tune(read(trials=2, seeds=(0,)), tmp_path / "out")
    store = Store(tmp_path / "out")
    assert all(len(store.test_sealed(record.key)["labels"]) == 0 for record in store.records())
    assert not (tmp_path / "out" / "opened.json").exists()
    shared = {t.recipe.parent.key for t in outcome.methods[2].trials} & {
        t.recipe.key for t in outcome.methods[0].trials
    }
    assert shared  # a training that two methods need was done once
    assert Counter(done).most_common(1)[0][1] == 1


def test_the_score_is_that_of_the_stored_curves(read, tune, tmp_path):
    study = read(trials=2)
    method = tune(study, tmp_path / "out").methods[1]
    store = Store(tmp_path / "out")
    for trial in method.trials:
        curves = [store.get(replace(trial.recipe, seed=s).key).curves["valid_balanced_accuracy"] for s in (0, 1)]
        mean = [(a + b) / 2 for a, b in zip(*curves, strict=True)]
        assert trial.score.value == max(mean) and trial.score.epoch == 1 + mean.index(max(mean))


def test_one_search_at_a_time(read, tune, tmp_path):
    store = Store(tmp_path / "out").create()
    with store.claim("tune"), pytest.raises(EquipoiseError, match="another equipoise tune is at work"):
        tune(read(), tmp_path / "out")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("valid = 0.1", "valid = 0.0", "tuning needs validation data.*valid = 0.1.*valid_per_class = 3"),
        ("valid = 0.1", "valid_per_class = 30", "tuning needs validation data"),
        (
            "[tune]",
            "[tune.space]\nlr = [0.1]\nweight_decay = {values = [1e-4, 2e-4], scale = 'choice'}\n[tune]",
            "2 different",
        ),
        ("tau=1.0", "tau=None", "refit = true leaves no validation data"),
        ("logit_adjust(tau=1.0)", "example_weighing", "refit = true leaves no validation data"),
        ("logit_adjust(tau=1.0)", "temperature", "refit = true leaves no validation data"),
        ("[methods.adjusted]", "[methods.weighted.space]\nweighting.beta = [0.5, -1.0]\n[methods.adjusted]", "outside"),
        ("[methods.adjusted]", "[methods.plain.space]\nmomentum = [0.5, 2.0]\n[methods.adjusted]", "momentum must"),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_is_written(read, tune, tmp_path, old, new, message):
    assert STUDY.count(old) == 1
    with pytest.raises(EquipoiseError, match=message):
        tune(read(STUDY.replace(old, new), refit=True), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 5", "trial = 5", r"\[tune\]: no key is named 'trial'. Did you mean 'trials'"),
        ("trials = 5", "trials = 0", r"\[tune\]: trials must be a whole number, at least 1"),
        ("trials = 5", 'sampler = "tpr"', r"\[tune\]: no sampler is named 'tpr'. Did you mean 'tpe'"),
        ("trials = 5", "refit = 1", r"\[tune\]: refit must be true or false"),
        ("trials = 5\nseeds = 2", "seeds = 0", r"\[tune\]: seeds must be"),
        ("trials = 5", "space = 3", r"\[tune.space\] must be a table"),
        ("[tune]", "[tune.space]\nloss.gamma = [1.0]\n[tune]", r"\[tune.space\]: no method has a dial 'loss.gamma'"),
        ("[methods.adjusted]", "[methods.plain.space]\nlos = [1]\n[methods.adjusted]", "methods.plain.space.*'los'"),
        ("[methods.adjusted]", "[methods.plain]\nspace = 1\n[methods.adjusted]", ""),
        ("valid = 0.1", "test = false", "test = false hides what a study reports on"),
    ],
)
def test_mistakes_in_the_file(read, old, new, message):
    assert old in STUDY
    with pytest.raises((Mistakes, EquipoiseError), match=message or "."):
        read(STUDY.replace(old, new, 1))


@pytest.mark.parametrize(
    "value", [3, True, "x", [], [[1]], [None], {}, {"a": 1}, {"values": 3}, float("nan"), {"low": []}]
)
def test_no_value_of_a_wrong_type_is_met_as_a_traceback(value):
    plain = {"baseline": "a", "task": {"name": "blobs"}, "base": {"model": "cnn_small"}, "methods": {"a": {}, "b": {}}}
    keys = ("trials", "sampler", "seeds", "prune", "refit", "space", "spaces")
    studies = [{**plain, "tune": value}, *({**plain, "tune": {key: value}} for key in keys)]
    studies += [{**plain, "tune": {"space": {dial: value}}} for dial in ("lr", "nesterov", "loss", "head.prior", "x.y")]
    studies += [{**plain, "methods": {"a": {}, "b": {"space": space}}} for space in (value, {"lr": value})]
    for study in studies:
        with contextlib.suppress(EquipoiseError):  # anything else fails
            Study.from_dict(study)


def command(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "equipoise", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


def finished_runs(out: Path) -> dict[str, int]:
    return {p.parent.name: p.stat().st_mtime_ns for p in out.glob("runs/*/record.json")}


@pytest.mark.slow
def test_killed_and_run_again_it_repeats_no_trial(read, tune, tmp_path):
    text = STUDY.partition("[methods.adjusted]")[0].replace("trials = 5\nseeds = 2", "trials = 6\nseeds = 1")
    study, out = read(text, sampler="tpe"), tmp_path / "out"
    asked = ("tune", tmp_path / "small.toml", "--out", out, "--workers", "1", "--sampler", "tpe", "--device", "cpu")
    process, deadline = command(*asked), time.monotonic() + 120
    while len(finished_runs(out)) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    seen = finished_runs(out)
    process = command(*asked)
    told, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and "tuned.toml" in told, told
    assert len(seen) < len(finished_runs(out)) and finished_runs(out).items() >= seen.items()
    write_outcome(tune(study, tmp_path / "whole"), Store(tmp_path / "whole"))
    assert table(out) == table(tmp_path / "whole") and len(table(out)) == 12
    assert finished_runs(out).keys() == finished_runs(tmp_path / "whole").keys()


def table(out: Path) -> list[dict[str, str]]:
    """trials.csv without what time may change."""
    rows = csv.DictReader((out / "trials.csv").read_text().splitlines())
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(read, tune, tmp_path, monkeypatch):
    class Stopping(Noting):
        def events(self):
            yield next(super().events())
            os.kill(os.getpid(), signal.SIGINT)

        def stop(self):
            self.stopping = True

    read()
    asked = ["tune", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"), "--trials", "2"]
    monkeypatch.setattr(driver, "Workers", Stopping)
    ended = CliRunner().invoke(app, asked)
    assert ended.exit_code == 130 and "goes on from here" in ended.output, ended.output
    monkeypatch.setattr(driver, "Workers", Noting)
    ended = CliRunner().invoke(app, asked)
    assert ended.exit_code == 0 and "Tuned study:" in ended.output, ended.output
    wrong = CliRunner().invoke(app, [*asked, "--sampler", "tpr"])
    assert isinstance(wrong.exception, EquipoiseError) and "Did you mean 'tpe'" in str(wrong.exception)
    assert len(table(tmp_path / "out")) == 6 and Counter(done).most_common(1)[0][1] == 1
