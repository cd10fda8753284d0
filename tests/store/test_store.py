"""Records are complete or absent, claims exclude each other, and newer stores are refused."""

import contextlib
import dataclasses
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from equipoise.core import EquipoiseError
from equipoise.store import SCHEMA, Record, Store


def a_record(key="k1", **changes):
    fields = dict(
        key=key, recipe={"loss": "focal"}, state="finished", class_names=("a", "b"), class_counts=(3, 1), data="f00",
        parameters=10, seconds=1.5, ended="2026-01-01T00:00:00+00:00", versions={"torch": "2"}, device="CPU",
        metrics={"valid_accuracy": 0.5}, curves={"train_loss": [1.0, 0.5]},
    )  # fmt: skip
    return Record(**{**fields, **changes})


OUTPUTS = {name: {"logits": np.eye(2, dtype=np.float32), "labels": np.array([0, 1])} for name in ("valid", "test")}


def test_what_is_put_comes_back(store):
    store.put(a_record(), OUTPUTS, b"weights")
    assert store.has("k1") and store.get("k1") == a_record() and store.records() == [a_record()]
    np.testing.assert_array_equal(store.valid("k1")["logits"], np.eye(2) - 1)  # the largest of a row becomes 0
    assert store.weights("k1") == b"weights"
    assert not any((store.path / "unfinished").iterdir())


def test_half_precision_keeps_predictions_and_probabilities(store):
    rng = np.random.default_rng(0)
    logits = (rng.normal(size=(500, 20)) * 5 + 3000).astype(np.float32)
    logits[:, 1] = logits[:, 0] + 1e-3  # half precision at 3000 has steps of 2
    logits[0, 2:] = -np.inf
    store.put(a_record(), {"valid": {"logits": logits, "labels": np.zeros(500, np.int64)}})
    assert (store.path / "runs/k1/valid.npz").stat().st_size < 2.2 * logits.size
    kept = store.valid("k1")["logits"]
    assert kept.dtype == np.float32 and np.isfinite(kept).all()
    np.testing.assert_array_equal(kept.argmax(axis=1), logits.argmax(axis=1))

    def softmax(z):
        e = np.exp(z.astype(np.float64) - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(softmax(kept), softmax(logits), atol=1e-3)


def test_looking_writes_nothing(tmp_path):
    store = Store(tmp_path / "absent")
    assert not store.exists and not store.has("k") and store.records() == []
    assert not (tmp_path / "absent").exists()


def test_the_first_opening_of_the_test_data_is_written_down(store):
    store.put(a_record(), OUTPUTS)
    store.valid("k1")
    store.test_sealed("k1")
    assert not (store.path / "opened.json").exists()
    store.open_test("k1")
    first = store.read_json("opened.json")
    store.open_test("k1")
    assert store.read_json("opened.json") == first and first["by_version"]


@pytest.mark.parametrize("call", ["os.rename", "os.fsync", "zipfile.ZipFile"])
def test_a_failure_on_the_way_leaves_no_record(store, monkeypatch, call):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    store.put(a_record("kept"), OUTPUTS)
    module, _, name = call.rpartition(".")
    monkeypatch.setattr(sys.modules[module], name, full)
    with pytest.raises(EquipoiseError, match=r"the disk is full; make room.*Finished runs are kept"):
        store.put(a_record(), OUTPUTS)
    monkeypatch.undo()
    assert not store.has("k1") and [r.key for r in store.records()] == ["kept"]
    store.put(a_record(), OUTPUTS)  # and once there is room it goes on
    assert store.has("k1")


def test_a_claim_excludes_other_processes_until_its_holder_dies(store):
    code = (
        "import sys, time; from equipoise.store import Store\n"
        f"with Store({str(store.path)!r}).claim('k1') as mine: print(mine, flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "True\n"
        with store.claim("k1") as mine:
            assert not mine
        assert store.is_claimed("k1") and not store.is_claimed("k2")
        with store.claim("k2") as mine:
            assert mine
    finally:
        holder.kill()
        holder.communicate()
    with store.claim("k1") as mine:
        assert mine
    assert not store.is_claimed("k1")


def test_a_newer_store_is_refused(store):
    store.write_json("store.json", {"schema": SCHEMA + 1})
    with pytest.raises(EquipoiseError, match="newer version of equipoise"):
        Store(store.path)


def test_a_newer_record_is_refused_and_an_unknown_field_ignored():
    plain = json.loads(json.dumps(a_record().to_dict()))
    with pytest.raises(EquipoiseError, match="newer version"):
        Record.from_dict({**plain, "schema": SCHEMA + 1})
    assert Record.from_dict({**plain, "colour": "red"}) == a_record()


def test_records_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        a_record().state = "failed"


def test_a_damaged_or_foreign_folder_is_named(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(EquipoiseError, match="is not a store"):
        Store(tmp_path)
    with pytest.raises(EquipoiseError, match="holds no study"):
        Store(tmp_path / "nothing").read_json("study.json")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "store.json").write_text("{")
    with pytest.raises(EquipoiseError, match="is damaged"):
        Store(tmp_path / "x")


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "s").write_text("")
    with pytest.raises(EquipoiseError, match="a file is in the way"):
        Store(tmp_path / "s").create()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_one_may_not_write_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(EquipoiseError, match="you may not write there"):
        Store(tmp_path / "s").create()


@pytest.mark.parametrize("step", range(6))
def test_a_store_whose_making_was_killed_at_any_step_is_made_by_the_next_call(step, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    calls = iter(range(100))

    def until_killed(does):
        def do(*arguments, **options):
            if next(calls) == step:
                raise Killed
            return does(*arguments, **options)

        return do

    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(Path, "mkdir", until_killed(Path.mkdir))
        patched.setattr(os, "replace", until_killed(os.replace))
        Store(tmp_path / "out").create()
    store = Store(tmp_path / "out").create()
    assert store.exists and store.records() == []
