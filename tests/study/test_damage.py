"""What a damaged or full disk does to a study: runs are done again, or a sentence says what is wrong."""

import errno
import io
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from equipoise.cli import app
from equipoise.core import EquipoiseError
from equipoise.report import collect
from equipoise.store import Damaged, Store
from equipoise.study import How, Listener, OnTerminal, analyze_study, jobs_of
from equipoise.study.probe import Asked
from equipoise.study.run import job as jobs_file
from equipoise.study.run.runs import set_aside_damaged
from equipoise.study.run.tensorboard import EventFile
from equipoise.train import Stopped

from .blobs import blobs_study

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def study():
    return blobs_study({"plain": {}, "focal": {"loss": "focal"}, "scaled": {"posthoc": "temperature"}}, epochs=12)


def run_all(study, store, stop=lambda: False):
    for job in jobs_of(recipe for _, recipe in study.recipes()):
        assert jobs_file.do(job, store, How(CPU), lambda *_: None, stop)


@pytest.fixture(scope="module")
def finished(study, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("finished") / "s").create()
    run_all(study, store)
    store.write_json("study.json", study.to_dict())
    return store


@pytest.fixture
def store(finished, tmp_path):
    return Store(shutil.copytree(finished.path, tmp_path / "s"))


def flip(path, place=0.5):
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1
    path.write_bytes(data)


def key_of(study, name):
    return next(recipe.key for method, recipe in study.recipes() if method == name)


@pytest.mark.parametrize("name", ["weights.safetensors", "test.npz", "record.json"])
def test_a_damaged_run_is_named_set_aside_and_trained_again(study, store, finished, name):
    key = key_of(study, "plain")
    flip(store.path / "runs" / key / name)
    said = io.StringIO()
    set_aside_damaged(store, OnTerminal(Console(file=said, width=1000)))
    assert f"{key}/{name} is damaged" in said.getvalue() and "done again" in said.getvalue()
    assert not store.has(key) and (store.path / "damaged" / key / name).exists()
    run_all(study, store)
    for output in (Store.valid, Store.test_sealed):
        for array, values in output(finished, key).items():
            np.testing.assert_array_equal(output(store, key)[array], values)
    assert store.weights(key) == finished.weights(key)


def test_damaged_weights_are_not_corrected(study, store):
    """A post-hoc method that is still to do finds what it builds on damaged: that is no failure of the method."""
    flip(store.path / "runs" / key_of(study, "plain") / "weights.safetensors")
    store.remove(key_of(study, "scaled"))
    with pytest.raises(Damaged, match="checksum does not match"):
        run_all(study, store)
    assert not store.has(key_of(study, "scaled"))


def test_a_damaged_checkpoint_is_thrown_away_with_a_note(study, finished, tmp_path):
    store, epochs = Store(tmp_path / "s").create(), []
    with pytest.raises(Stopped):
        run_all(study, store, stop=lambda: True)
    (path,) = store.path.glob("unfinished/*/checkpoint.pt")
    flip(path)
    plain = jobs_of([next(study.recipes())[1]])[0]
    jobs_file.do(plain, store, How(CPU), lambda epoch, _: epochs.append(epoch), lambda: False)
    assert epochs[0] == 1  # from the start
    record = store.get(plain.training.key)
    assert "checkpoint was damaged" in record.notes[0]
    assert store.weights(record.key) == finished.weights(record.key)
    store.write_json("study.json", replace(study, methods={"plain": study.methods["plain"]}).to_dict())
    assert collect(store).runs[0].record.notes == record.notes


def test_analyze_leaves_out_what_is_damaged(study, store):
    key = key_of(study, "focal")
    flip(store.path / "runs" / key / "test.npz")
    said = io.StringIO()
    analysis = analyze_study(store, Asked(images=20), CPU, OnTerminal(Console(file=said, width=1000)))
    assert analysis.predictions.methods == ("plain", "scaled")
    assert f"{key}/test.npz is damaged" in said.getvalue()


@pytest.mark.parametrize("name", ["layers.npz", "layers.json"])
def test_what_an_analysis_kept_is_measured_again_if_damaged(study, store, name):
    quiet, key = Listener(), key_of(study, "plain")
    whole = analyze_study(store, Asked(images=20), CPU, quiet)
    path = store.path / "analysis" / f"{key}.{name}"
    data = path.read_bytes()
    flip(path, 0.9)
    flip(store.path / "analysis.json")
    assert analyze_study(store, Asked(images=20), CPU, quiet) == whole
    assert path.read_bytes() == data


def test_analyze_on_a_read_only_disk(store, monkeypatch):
    def refuse(*args, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(EquipoiseError, match="read-only"):
        analyze_study(store, Asked(images=20), CPU, Listener())


def test_a_full_disk_and_tensorboard(tmp_path, monkeypatch):
    file = EventFile(tmp_path / "events")

    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.open", full)
    with pytest.raises(EquipoiseError, match="the disk is full"):
        file.add(1, {"loss": 1.0})


@pytest.mark.parametrize("command", ["report", "status", "analyze"])
def test_a_file_is_not_a_study(tmp_path, command):
    (tmp_path / "report.html").write_text("x")
    result = CliRunner().invoke(app, [command, str(tmp_path / "report.html")])
    assert isinstance(result.exception, EquipoiseError) and "is a file; give the folder" in str(result.exception)
