"""The parts of the cluster engine without a cluster: what a seat makes of messages, what follows, what comes back."""

import os
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing import Pipe
from threading import Thread
from types import SimpleNamespace

import pytest
import torch

from equipoise.store import Damaged, Store
from equipoise.study import How, Study, jobs_of
from equipoise.study.run.child import Trouble
from equipoise.study.run.cluster import parcels, task
from equipoise.study.run.cluster.engine import RayEngine
from equipoise.study.run.cluster.parcels import Parcels
from equipoise.study.run.cluster.seat import RaySeat
from equipoise.study.run.job import record_death
from equipoise.study.run.loads import epochs_of
from equipoise.study.run.workers import LOSSES, Workers

CPU = torch.device("cpu")


class Gone(Exception):
    """Stands for what Ray raises where a worker or node is lost."""


class Failed(Gone):
    """Stands for an error inside a task."""


class NoMemory(Gone):
    """Stands for a worker that Ray ended because its node had no memory left."""


@dataclass(eq=False)
class Stream:
    """Stands for a task: what it will have yielded, and whether it was ended."""

    messages: deque = field(default_factory=deque)
    ended: bool = False

    def __next__(self):
        return self.messages.popleft()


class FakeRay:
    exceptions = SimpleNamespace(RayError=Gone, RayTaskError=Failed, OutOfMemoryError=NoMemory)

    def wait(self, streams, timeout=None):
        return [stream for stream in streams if stream.messages], []

    def get(self, message):
        if isinstance(message, Exception):
            raise message
        return message

    def cancel(self, stream, force):
        stream.ended = True


@pytest.fixture
def jobs():
    study = {
        "baseline": "a",
        "seeds": 1,
        "task": {"name": "blobs", "n_max": 60},
        "base": {"model": "cnn_small(width=4)", "epochs": 4},
        "methods": {"a": {}, "b": {"loss": "focal", "epochs": 8}},
    }
    return jobs_of(recipe for _, recipe in Study.from_dict(study).recipes())


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "driver").create()


@pytest.fixture
def finished(tmp_path):
    """The files of a run that another store has finished."""

    def files(job):
        other = Store(tmp_path / "node").create()
        if not other.has(job.training.key):
            record_death(job.training, other, "stands for any record", CPU)
        return other.files_of(job.training.key)

    return files


@pytest.fixture
def seat(store):
    submitted = []

    def submit(jobs):
        submitted.append(Stream())
        return submitted[-1]

    made = RaySeat(3, store, FakeRay(), submit)
    made.submitted = submitted
    return made


# -- what a seat makes of messages -------------------------------------------------------------------------------------


def test_runs_and_checkpoints_go_into_the_store_before_the_answer_is_told(seat, store, jobs, finished):
    job, key = jobs[0], jobs[0].training.key
    seat.start([job])
    stream = seat.submitted[0]
    stream.messages.extend([("begun", None), ("epoch", (0, 2, {"train_loss": 1.0})), ("checkpoint", (key, b"state"))])
    assert seat.receive() == [("begun", None), ("epoch", (0, 2, {"train_loss": 1.0}))]
    assert (store.scratch(key) / "checkpoint.pt").read_bytes() == b"state" and store.is_claimed(key)
    stream.messages.extend([("run", (key, finished(job))), ("answer", [True])])
    assert seat.receive() == [("answer", [True])]
    assert store.files_of(key) == finished(job) and not store.scratch(key).exists()
    assert not seat.load and not store.is_claimed(key)


def test_a_load_that_another_driver_is_at_is_left_to_it(seat, store, jobs):
    with store.claim(jobs[0].training.key):
        seat.start([jobs[0]])
        assert seat.receive() == [("answer", [False])] and not seat.submitted
        seat.start(jobs)
        seat.submitted[0].messages.extend([("epoch", (0, 1, {})), ("answer", [True])])
        assert seat.receive() == [("epoch", (1, 1, {})), ("answer", [False, True])]


@pytest.mark.parametrize(
    ("error", "what"),
    [(Gone("node died"), "lost"), (Failed("ValueError: x"), "error"), (NoMemory(), "error")],
    ids=["node", "ours", "memory"],
)
def test_how_a_task_ends_without_an_answer(seat, store, jobs, error, what):
    seat.start([jobs[0]])
    seat.submitted[0].messages.append(error)
    ((told, content),) = seat.receive()
    assert told == what and not seat.load and not store.is_claimed(jobs[0].training.key)
    if isinstance(error, NoMemory):
        assert content.memory
    elif what == "error":
        assert content == Trouble("ValueError: x")


def test_the_first_of_two_attempts_wins_and_the_other_is_ended(seat, store, jobs, finished):
    job, key = jobs[0], jobs[0].training.key
    seat.start([job])
    seat.double()
    slow, quick = seat.submitted
    slow.messages.append(("epoch", (0, 2, {})))
    quick.messages.extend([("begun", None), ("epoch", (0, 1, {})), ("checkpoint", (key, b"older"))])
    assert seat.receive() == [("epoch", (0, 2, {}))], "the slower one's news are none"
    assert not (store.scratch(key) / "checkpoint.pt").exists()
    quick.messages.extend([("run", (key, finished(job))), ("answer", [True])])
    slow.messages.extend([("run", (key, {"record.json": b"not even read"}))])
    slow.messages.rotate()
    assert seat.receive()[-1] == ("answer", [True])
    assert slow.ended and store.files_of(key) == finished(job)


def test_of_two_attempts_one_may_die(seat, jobs):
    seat.start([jobs[0]])
    seat.double()
    first, second = seat.submitted
    first.messages.append(Gone())
    assert seat.receive() == [] and seat.load
    second.messages.append(Gone())
    ((what, _),) = seat.receive()
    assert what == "lost"


def test_stopping_keeps_what_has_arrived(seat, store, jobs, finished):
    key = jobs[0].training.key
    seat.start([jobs[0]])
    seat.submitted[0].messages.append(("run", (key, finished(jobs[0]))))
    seat.stop()
    assert seat.receive() == [("answer", None)]
    assert store.has(key) and seat.submitted[0].ended


def test_what_was_damaged_on_the_way_is_done_again(seat, store, jobs, finished):
    key, files = jobs[0].training.key, finished(jobs[0])
    seat.start([jobs[0]])
    record = files["record.json"].replace(b"stands for", b"stood for.")
    seat.submitted[0].messages.append(("run", (key, files | {"record.json": record})))
    ((what, why),) = seat.receive()
    assert what == "lost" and "damaged" in why and not store.has(key)


def test_a_store_adopts_only_what_belongs_together(store, tmp_path, jobs, finished):
    key, files = jobs[0].training.key, finished(jobs[0])
    for wrong in ({}, files | {"valid.npz": b"more"}, {"record.json": b"{"}):
        with pytest.raises(Damaged):
            store.adopt(key, wrong)
    with pytest.raises(Damaged):
        store.adopt(jobs[1].training.key, files)
    assert not store.records()
    store.adopt(key, files)
    assert store.damage(key) is None


# -- what follows for a study ------------------------------------------------------------------------------------------


@pytest.fixture
def engine(store, monkeypatch):
    """An engine on a cluster that has always room, where nothing is submitted."""
    cluster = SimpleNamespace(ray=FakeRay(), is_idle=lambda device: True)
    monkeypatch.setattr("equipoise.study.run.cluster.engine.connected", lambda address: cluster)
    monkeypatch.setattr(RayEngine, "_submit", lambda self, jobs: Stream())
    monkeypatch.setattr(RayEngine, "pack_size", lambda self, jobs: 1)
    return RayEngine(store, How(CPU, 2, engine="ray"))


def test_only_a_straggler_near_the_end_is_doubled(engine, jobs, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("equipoise.study.run.cluster.engine.time.monotonic", lambda: now[0])
    first, second = engine.seats(2)
    first.start([jobs[0]])
    second.start([jobs[1]])
    first.attempts[0].began = second.attempts[0].began = 100.0
    engine._paces = [1.0, 1.1, 0.9]
    now[0] += 8 * 1.6  # 3.2 seconds for an epoch of the one, 1.6 for one of the other
    engine.ready([first, second], 0)
    assert len(first.attempts) == len(second.attempts) == 1, "as long as nobody is idle, nothing is doubled"
    first.close()
    now[0] += 2
    engine.ready([second], 0)
    assert len(second.attempts) == 2
    now[0] += 2
    engine.ready([second], 0)
    assert len(second.attempts) == 2, "once is enough"


def test_what_is_not_slow_is_not_doubled(engine, jobs, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("equipoise.study.run.cluster.engine.time.monotonic", lambda: now[0])
    busy, _ = engine.seats(2)
    busy.start([jobs[1]])
    engine._paces = [1.0, 1.1, 0.9]
    now[0] += 60
    engine.ready([busy], 0)
    assert len(busy.attempts) == 1, "it waits for a place, so it is not slow"
    busy.attempts[0].began = now[0]
    now[0] += 8 * 1.4
    engine.ready([busy], 0)
    assert len(busy.attempts) == 1


def test_long_trainings_begin_first(engine, jobs, store):
    pool = Workers(jobs, store, How(CPU, 1, engine="ray"))
    assert [epochs_of(load) for load in pool.waiting] == [8, 4]


def test_a_lost_machine_is_no_failure_but_too_many_are(engine, jobs, store, monkeypatch):
    lost = []

    def submit(self, jobs):
        lost.append(jobs[0].training.key)
        return Stream(deque([Gone()]))

    monkeypatch.setattr(RayEngine, "_submit", submit)
    events = list(Workers(jobs[:1], store, How(CPU, 1, engine="ray")).events())
    assert [e.what for e in events].count("again") == LOSSES and events[-1].what == "done"
    assert "its worker or node is gone (Gone)" in store.get(jobs[0].training.key).error
    assert len(lost) == LOSSES + 1


# -- what comes back ---------------------------------------------------------------------------------------------------


class FakeChild:
    """Stands for a worker that is at an order and does not die."""

    def __init__(self):
        self.pipe, self.there = Pipe()
        self._alive = Pipe()
        self.process, self.busy = SimpleNamespace(sentinel=self._alive[0]), True

    def messages(self):
        told = []
        while self.pipe.poll():
            told.append(self.pipe.recv())
            self.busy = told[-1][0] != "answer"
        return told


def test_the_end_of_an_order_is_told_at_once(store, monkeypatch):
    """Epochs are gathered for a while; a worker that is done would have to wait for nothing."""
    monkeypatch.setattr(task, "PAUSE", 60.0)
    monkeypatch.setattr(task, "rest", lambda child: None)
    child = FakeChild()

    def work():
        for message in (("epoch", (0, 1, {})), ("epoch", (0, 2, {})), ("answer", [True])):
            time.sleep(0.05)
            child.there.send(message)

    worker, began = Thread(target=work), time.monotonic()
    worker.start()
    assert list(task._relayed(child, Parcels(store, []))) == [("epoch", (0, 2, {})), ("answer", [True])]
    assert time.monotonic() - began < 30
    worker.join()


def test_parcels_are_sent_once_and_checkpoints_not_too_often(store, jobs, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(parcels.time, "monotonic", lambda: now[0])
    job, key = jobs[0], jobs[0].training.key
    path = store.scratch(key) / "checkpoint.pt"
    path.parent.mkdir()
    path.write_bytes(b"came with the order")
    found = Parcels(store, [key])
    assert list(found.new()) == []
    path.write_bytes(b"x" * 8_000_000)
    os.utime(path, ns=(1, 1))
    assert [(what, len(content)) for what, (_, content) in found.new()] == [("checkpoint", 8_000_000)]
    path.write_bytes(b"newer")
    os.utime(path, ns=(2, 2))
    assert list(found.new()) == []
    now[0] = 3.9  # 8 MB at 2 MB a second
    assert list(found.new()) == []
    now[0] = 4.1
    assert list(found.new()) == [("checkpoint", (key, b"newer"))]
    record_death(job.training, store, "stands for any record", CPU)
    assert [what for what, _ in found.new()] == ["run"] and list(found.new()) == []
