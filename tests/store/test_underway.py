"""What a run under way tells of itself."""

import pytest

from equipoise.store import underway as module
from equipoise.store.underway import UnderWay, note_epoch, note_waiting, read_note, waiting_curves


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test winds."""
    times = [1000.0]
    monkeypatch.setattr(module.time, "time", lambda: times[0])
    return times


def test_epochs_and_the_time_left(store, clock):
    assert read_note(store, "k") is None
    note_epoch(store, "k", 1, 10)
    assert read_note(store, "k") == UnderWay(1, 10, 1000.0, None)
    assert read_note(store, "k").seconds_left is None
    clock[0] += 6
    note_epoch(store, "k", 4, 10)
    assert read_note(store, "k").seconds_left == pytest.approx(2.0 * 6)


def test_it_is_told_once_a_second(store, clock):
    note_epoch(store, "k", 1, 10)
    clock[0] += 0.5
    note_epoch(store, "k", 2, 10)
    assert read_note(store, "k").epoch == 1
    clock[0] += 0.5
    note_epoch(store, "k", 3, 10)
    assert read_note(store, "k") == UnderWay(3, 10, 1001.0, 0.5)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_run_that_goes_on_from_an_earlier_epoch(store, clock, hours):
    """After a kill the last checkpoint is behind the last note; a clock set back does no harm either."""
    note_epoch(store, "k", 7, 10)
    clock[0] += 3600 * hours
    note_epoch(store, "k", 6, 10)
    assert read_note(store, "k") == UnderWay(6, 10, clock[0], None)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"epoch": 1}', '{"other": 2}'])
def test_what_cannot_be_read_is_nothing(store, text):
    store.scratch("k").mkdir(parents=True)
    (store.scratch("k") / "underway.json").write_text(text)
    assert read_note(store, "k") is None


def test_a_run_that_waits_has_its_curves_back_unless_a_single_bit_is_wrong(store):
    curves = {"train_loss": [2.5, 1.25], "valid_accuracy": [0.1, 0.2]}
    path = store.scratch("run") / "waiting.json"
    path.parent.mkdir(parents=True)
    assert waiting_curves(store, "run") == {}
    note_waiting(store, "run", curves)
    assert waiting_curves(store, "run") == curves
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert waiting_curves(store, "run") in ({}, curves), place
    path.write_text('{"train_loss": [9.0, 9.0], "valid_accuracy": [0.9, 0.9]}')  # its checksum is gone
    assert waiting_curves(store, "run") == {}
