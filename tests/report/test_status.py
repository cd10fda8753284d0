"""A study under way, watched from outside."""

import io
import math

import pytest
from rich.console import Console

from equipoise.analysis.statistics.looks import Looks
from equipoise.analysis.statistics.sequential import Round, Rounds
from equipoise.report import print_status, status_of
from equipoise.store.underway import note_epoch


def shown(status):
    text = io.StringIO()
    print_status(status, Console(file=text, width=100))
    return text.getvalue()


@pytest.fixture
def half_done(store, demo):
    """Two runs of `plain` with validation scores, one of `ldam`; one run under way, the others to do."""
    for method in demo.METHODS:
        for seed in range(6):
            store.remove(demo.key_of(method, seed))
    for method, seed, score in (("plain", 0, 0.5), ("plain", 1, 0.6), ("ldam", 0, 0.7)):
        metrics = {"valid_balanced_accuracy": score, "valid_nll": 1 - score}
        store.put(demo.record_of(method, seed, metrics=metrics, seconds=10.0))
    return store


def test_states_and_the_best_so_far(half_done, demo):
    with half_done.claim(demo.key_of("focal", 2)):
        status = status_of(half_done)
    states = [run.state for run in status.runs]
    assert [states.count(s) for s in ("finished", "under way", "failed", "to do")] == [3, 1, 0, 20]
    name, estimate = status.best
    assert (name, estimate.n, estimate.mean) == ("ldam", 1, 0.7)
    assert math.isnan(estimate.low)
    text = shown(status)
    assert "Best so far: ldam, validation balanced accuracy 70.0 [no interval], n = 1" in text


def test_the_best_where_lower_is_better(half_done):
    half_done.write_json("study.json", half_done.read_json("study.json") | {"metric": "nll"})
    name, estimate = status_of(half_done).best
    assert (name, estimate.mean) == ("ldam", pytest.approx(0.3))


def test_an_interval_by_hand(half_done, demo):
    half_done.remove(demo.key_of("ldam", 0))
    _, estimate = status_of(half_done).best
    half = 12.7062 * 0.1 / math.sqrt(2) / math.sqrt(2)  # t of one degree of freedom times the standard error
    assert (estimate.low, estimate.high) == (pytest.approx(0.55 - half, abs=1e-4), pytest.approx(0.55 + half, abs=1e-4))


def test_time_left_is_shared_by_those_at_work(half_done, demo, monkeypatch):
    """20 runs to do of 10 s, and two under way: one has 4 epochs of 2 s left, of the other nothing is known."""
    key = demo.key_of("focal", 2)
    clock = iter([1000.0, 1004.0])
    monkeypatch.setattr("equipoise.store.underway.time.time", lambda: next(clock))
    with half_done.claim(key), half_done.claim(demo.key_of("focal", 3)):
        note_epoch(half_done, key, 4, 10)
        note_epoch(half_done, key, 6, 10)
        status = status_of(half_done)
    assert status.seconds_left == pytest.approx((19 * 10 + 10 + 4 * 2) / 2)
    text = shown(status)
    assert "focal · seed 2: epoch 6 of 10, about 8.0 s left" in text
    assert "About 1 min 44 s left" in text


def test_nobody_at_work_has_no_time_left(half_done):
    assert status_of(half_done).seconds_left is None


def test_watching_does_not_open_the_test_set(store):
    status_of(store)
    assert not (store.path / "opened.json").exists()


def test_names_are_taken_literally(half_done):
    study = half_done.read_json("study.json")
    study["methods"][2]["name"], study["question"] = "[red]x[/red]", "[bold]why[/nonsense]"
    half_done.write_json("study.json", study)
    text = shown(status_of(half_done))
    assert "[red]x[/red]" in text and "[bold]why[/nonsense]" in text


def test_a_method_that_was_dropped_has_nothing_to_do(half_done):
    found = (Round(("plain", "ldam", "focal", "balanced_softmax"), {"focal": "surely worse than ldam"}, ("…",), ()),)
    rounds = Rounds(0.05, Looks((3, 6), (0.5, 0.5)), tuple(range(6)), found)
    half_done.write_json("sequential.json", rounds.to_dict())
    status = status_of(half_done)
    assert "focal" not in {run.method for run in status.runs}
    assert len(status.runs) == 18
