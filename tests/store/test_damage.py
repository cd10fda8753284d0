"""Damaged files are known when they are read, named, and set aside; nothing is read as something else."""

import io
import json
import random

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.core.files import checksum, sealed, unsealed
from equipoise.store import Comparison, Convergence, Damaged, Record, Store
from equipoise.store.checked_json import from_bytes, to_bytes
from equipoise.store.filled import filled

OUTPUTS = {
    name: {"logits": np.random.default_rng(0).normal(size=(20, 3)), "labels": np.arange(20) % 3}
    for name in ("valid", "test")
}
WEIGHTS = bytes(range(256)) * 4
ODD = ["", "{", "[]", "{}", "null", "3", '"x"', "[1]", '{"schema": 99}', '{"schema": "1"}', "\x00", "[" * 3000, "é"[:1]]


def a_record(key="k1", **changes):
    fields = dict(
        key=key, recipe={"loss": "focal"}, state="finished", class_names=("a", "b", "c"), class_counts=(3, 2, 1),
        data="f00", parameters=10, seconds=1.5, ended="2026-01-01T00:00:00+00:00", versions={"torch": "2"},
        device="CPU", metrics={"valid_accuracy": 0.5}, curves={"train_loss": [1.0, 0.5]},
    )  # fmt: skip
    return Record(**{**fields, **changes})


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "s").create()
    store.put(a_record(), OUTPUTS, WEIGHTS)
    return store


def read_all(store):
    """All that a run has, in a form that can be compared."""
    arrays = [store.valid("k1"), store.test_sealed("k1"), store.progress("k1")]
    plain = [{name: array.tolist() for name, array in group.items()} for group in arrays]
    return store.get("k1"), plain, store.weights("k1")


@pytest.mark.parametrize("name", ["record.json", "test.npz", "valid.npz", "weights.safetensors"])
def test_no_flipped_bit_is_read_as_something_else(store, name):
    path, rng = store.path / "runs" / "k1" / name, random.Random(name)
    whole, data, found = read_all(store), path.read_bytes(), 0
    for _ in range(300):
        place = rng.randrange(8 * len(data))
        broken = bytearray(data)
        broken[place // 8] ^= 1 << place % 8
        path.write_bytes(broken)
        assert (store.damage("k1") is not None) or read_all(store) == whole
        found += store.damage("k1") is not None
    assert found > 285  # a flip in the word "checksum" itself leaves all that counts as it was
    path.write_bytes(data)
    assert store.damage("k1") is None


@pytest.mark.parametrize("name", ["record.json", "test.npz", "weights.safetensors"])
@pytest.mark.parametrize("kept", [0, 0.3, 0.99, None])
def test_a_file_that_is_cut_or_gone_is_named(store, name, kept):
    path = store.path / "runs" / "k1" / name
    data = path.read_bytes()
    path.unlink() if kept is None else path.write_bytes(data[: int(kept * len(data))])
    damage = store.damage("k1")
    assert isinstance(damage, Damaged) and damage.path == path
    assert str(path) in str(damage) and "trains it again" in str(damage)


def test_a_damaged_run_is_set_aside_and_done_again(store):
    store.put(a_record("k2"), OUTPUTS, WEIGHTS)
    (store.path / "runs/k1/test.npz").write_bytes(b"torn")
    (damage,) = store.set_aside_damaged(["k1", "k2", "k3"])
    assert damage.path.name == "test.npz" and "checksum" in damage.problem
    assert not store.has("k1") and store.has("k2") and (store.path / "damaged/k1/test.npz").read_bytes() == b"torn"
    store.put(a_record(), OUTPUTS, WEIGHTS)
    assert store.damage("k1") is None
    (store.path / "runs/k1/record.json").write_bytes(b"")
    assert [d.path.name for d in store.set_aside_damaged()] == ["record.json"]
    assert sorted(p.name for p in (store.path / "damaged").iterdir()) == ["k1", "k1.1"]


def test_a_run_that_another_process_works_on_is_left_to_it(store):
    (store.path / "runs/k1/test.npz").write_bytes(b"torn")
    with store.claim("k1") as mine:
        assert mine and store.set_aside_damaged() == [] and store.has("k1")


def test_a_run_without_its_record_is_done_again(store):
    """It used to be "Directory not empty", for ever."""
    (store.path / "runs/k1/record.json").unlink()
    assert not store.has("k1") and not store.finished("k1")
    store.put(a_record(), OUTPUTS, WEIGHTS)
    assert store.damage("k1") is None and (store.path / "damaged/k1/weights.safetensors").exists()


def test_records_that_cannot_be_read_are_passed_over(store):
    store.put(a_record("k2"), OUTPUTS)
    (store.path / "runs/k1/record.json").write_text("{")
    assert [record.key for record in store.records()] == ["k2"]
    assert store.finished("k2") and not store.finished("k1")


def test_files_of_before_there_were_checksums_are_read(store):
    path = store.path / "runs/k1/record.json"
    plain = {name: value for name, value in store.get("k1").to_dict().items() if name not in ("files", "notes")}
    path.write_text(json.dumps(plain))
    assert store.get("k1") == a_record() and store.damage("k1") is None and store.weights("k1") == WEIGHTS
    (store.path / "runs/k1/test.npz").write_bytes(b"PK\x03\x04 torn")
    assert store.damage("k1").path.name == "test.npz"


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("name", ["record.json", "store.json", "study.json", "opened.json"])
def test_an_odd_document_is_a_sentence(store, name, text):
    path = store.path / ("runs/k1/record.json" if name == "record.json" else name)
    path.write_text(text)
    with pytest.raises(EquipoiseError) as error:
        {"record.json": lambda: store.get("k1"), "store.json": lambda: Store(store.path), "study.json": store.study,
         "opened.json": store.opened}[name]()  # fmt: skip
    assert name in str(error.value) or "newer version" in str(error.value)
    assert len(str(error.value)) < 700


@pytest.mark.parametrize("name", ["class_names", "curves", "recipe", "state", "key", "class_counts", "files"])
@pytest.mark.parametrize("value", [None, 7, "x", ["x"], {"x": 1}, [[1]], {"plan": 3}, {"plan": {"epochs": "x"}}])
def test_a_record_of_odd_values_is_damaged(store, name, value):
    path = store.path / "runs/k1/record.json"
    path.write_text(json.dumps({**store.get("k1").to_dict(), name: value}))
    whole = (name, value) in (("class_names", ["x"]), ("recipe", {"x": 1}))
    if not whole:
        with pytest.raises(Damaged, match="record.json is damaged"):
            store.get("k1")


def test_a_damaged_list_of_openings_is_begun_anew_and_says_so(store):
    store.note_opening(["k1"])
    (store.path / "opened.json").write_text("{")
    with pytest.raises(Damaged):
        store.opened()
    store.note_opening(["k1"], peek=True)
    assert store.opened().lost and [o.peek for o in store.opened().openings] == [True]
    assert (store.path / "damaged/opened.json").read_text() == "{"


def test_a_checksum_taken_away_does_not_make_another_list_of_longer_runs_whole(store):
    store.write(Convergence(reason="a longer training costs 50 % of the study"))
    path = store.path / "convergence.json"
    path.write_text(json.dumps({**store.read_json("convergence.json"), "reason": "it converged"}))
    with pytest.raises(Damaged, match="its checksum is gone"):
        store.document(Convergence)


@pytest.mark.parametrize(
    ("verdict", "lost"),
    [
        (None, False),
        ({"methods": [{"n": 0}]}, False),
        ({"methods": [{"n": 0}, {"n": 2}]}, True),
        ({"methods": 3}, True),
    ],
)
def test_a_list_of_openings_that_is_gone_is_missed_where_a_verdict_was_written(store, verdict, lost):
    if verdict is not None:
        store.write_json("verdict.json", verdict)
    assert store.was_opened() is lost
    store.note_opening(["k1"])
    assert store.was_opened() and bool(store.opened().lost) is lost


def test_comparisons_come_back_and_are_noted_once(store):
    plain = {
        "when": "2026", "by_version": "1", "metric": "accuracy", "priority": None,
        "baseline": {"name": "plain", "recipe": {"loss": "x"}, "runs": {"0": "k1"}},
        "methods": [{"name": "focal", "recipe": {"loss": "focal"}, "runs": {"0": "k2", "1": "k3"}}],
    }  # fmt: skip
    comparison = filled(Comparison, plain)
    store.note_comparison(comparison)
    store.note_comparison(filled(Comparison, {**plain, "when": "2027"}))
    assert store.opened().comparisons == (comparison,) and comparison.methods[0].runs == {0: "k2", 1: "k3"}


def test_a_file_is_not_a_store(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(EquipoiseError, match="is a file; give the folder"):
        Store(tmp_path / "file").study()


@pytest.mark.parametrize("content", [{}, {"a": [1, {"b": None}]}, {"é\udce9": "0" * 32}, {"checksum": "mine"}])
@pytest.mark.parametrize("indent", [1, None])
def test_json_carries_its_checksum(content, indent):
    raw = to_bytes(content, indent=indent)
    expected = {name: value for name, value in content.items() if name != "checksum"}
    assert from_bytes(raw) == expected and "checksum" in json.loads(raw)
    with pytest.raises(ValueError, match="checksum|JSON"):
        from_bytes(raw[:-1] + b" }")


def test_a_sealed_checkpoint_survives_no_flip():
    buffer, rng = io.BytesIO(), random.Random(0)
    torch.save({"weight": torch.randn(50, 20)}, buffer)
    whole = sealed(buffer.getvalue())
    assert unsealed(whole) == buffer.getvalue()
    for _ in range(400):
        place = rng.randrange(8 * len(whole))
        broken = bytearray(whole)
        broken[place // 8] ^= 1 << place % 8
        assert unsealed(bytes(broken)) is None
    assert unsealed(whole[:-1]) is unsealed(b"") is unsealed(buffer.getvalue()) is None
    assert len(checksum(b"")) == 32
