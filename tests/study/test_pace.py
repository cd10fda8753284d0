"""The time left: right for a study whose runs are known, sane from the first epochs on, never shorter than a run."""

import pytest

from equipoise.study.run.pace import Pace

EPOCHS = 10


def simulated(runs, workers, seconds, at):
    """The pace after `at` seconds of a study whose runs take so many seconds each, and the true time left."""
    pace, free = Pace(runs, 0), [0.0] * workers
    events, end = [], 0.0
    for run in range(runs):
        seat = min(range(workers), key=lambda i: free[i])
        begun, took = free[seat], seconds(run)
        events.append((begun, 3, "begun", run))
        events += [(begun + took * e / EPOCHS, 1, "epoch", run, e) for e in range(1, EPOCHS + 1)]
        free[seat] = begun + took
        events.append((free[seat], 2, "ended", run))
        end = max(end, free[seat])
    for time, _, what, run, *epoch in sorted(events):
        if time <= at:
            getattr(pace, what)(str(run), *epoch, *([EPOCHS] if epoch else []), at=time)
    return pace.left(at), end - at


@pytest.mark.parametrize("at", [1.0, 5.0, 12.0, 100.0, 250.0, 269.0])
def test_equal_runs_are_foretold(at):
    left, true = simulated(54, 2, lambda run: 10.0, at)
    assert left == pytest.approx(true, abs=1.5)


@pytest.mark.parametrize("at", [30.0, 80.0, 200.0])
def test_unlike_runs_are_foretold_roughly(at):
    left, true = simulated(54, 2, lambda run: 5.0 + 10.0 * (run % 2), at)
    assert 0.7 * true < left < 1.4 * true


def test_the_last_run_alone_takes_as_long_as_it_takes():
    pace = Pace(2, 1)
    pace.begun("x", at=0.0)
    pace.side_by_side = 8
    for epoch in range(1, 6):
        pace.epoch("x", epoch, 10, at=10.0 * epoch)
    assert pace.left(50.0) == 50.0 and pace.left(60.0) == 40.0
    assert pace.left(500.0) == 0.0


def test_nothing_is_said_before_anything_is_known():
    pace = Pace(54, 0)
    assert pace.left(80.0) is None
    pace.begun("a", at=0.0)
    assert pace.left(80.0) is None


def test_a_run_from_a_checkpoint_does_not_flatter():
    pace = Pace(1, 0)
    pace.begun("a", at=0.0)
    pace.epoch("a", 91, 100, at=1.0)  # 90 of them were there
    assert pace.left(1.0) is None
    pace.epoch("a", 92, 100, at=2.0)
    assert pace.left(2.0) == pytest.approx(8.0)


def test_runs_of_other_processes_and_of_dead_workers():
    pace = Pace(4, 0)
    pace.begun("a", at=0.0)
    pace.epoch("a", 1, 2, at=5.0)
    pace.ended("b", at=5.0)  # elsewhere
    pace.stopped("c")
    assert pace.left(5.0) == pytest.approx(25.0)
    pace.stopped("a")
    assert pace.left(5.0) is None
