"""Loads that take turns on a GPU: one trains, the next is ready, and whoever is killed or stopped holds up nobody."""

import multiprocessing
import os
import signal
import threading
import time

import pytest
import torch

from equipoise.store import Store
from equipoise.study import How
from equipoise.study.run import turn
from equipoise.study.run.local import LocalEngine
from equipoise.train import Stopped

CPU, GPU = torch.device("cpu"), torch.device("cuda")  # only their names are looked at


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store").create()


@pytest.fixture
def one_gpu(monkeypatch):
    monkeypatch.setattr(turn, "_gpu", lambda device: "the only one")
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)


def never():
    return False


def test_one_at_a_time(store, one_gpu):
    inside, most = [], []

    def train():
        with turn.its_turn(store, How(GPU), never):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


@pytest.mark.parametrize("how", [How(CPU, 1), How(CPU, 4), How(GPU, 2)], ids=["CPU", "CPU, 4", "GPU, 2"])
def test_nobody_waits_on_a_cpu_or_where_several_were_asked_for(store, one_gpu, how):
    with turn.its_turn(store, how, never), turn.its_turn(store, how, never):
        pass


def test_who_is_stopped_while_it_waits_trains_nothing(store, one_gpu):
    asked = iter([False, False, True])
    with (
        turn.its_turn(store, How(GPU), never),
        pytest.raises(Stopped),
        turn.its_turn(store, How(GPU), lambda: next(asked)),
    ):
        raise AssertionError("it was not its turn")
    with turn.its_turn(store, How(GPU), never):
        pass


def test_an_error_ends_the_turn(store, one_gpu):
    with pytest.raises(RuntimeError, match="diverged"), turn.its_turn(store, How(GPU), never):
        raise RuntimeError("diverged")
    with turn.its_turn(store, How(GPU), never):
        pass


def _hold(path, ready):
    turn._gpu = lambda device: "the only one"
    with turn.its_turn(Store(path), How(GPU), never):
        ready.set()
        time.sleep(600)


def test_the_turn_of_a_killed_process_is_over(store, one_gpu):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(store.path, ready))
    holder.start()
    assert ready.wait(120)
    stop_waiting = time.monotonic() + 0.3
    with pytest.raises(Stopped), turn.its_turn(store, How(GPU), lambda: time.monotonic() > stop_waiting):
        raise AssertionError("it was not its turn")
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with turn.its_turn(store, How(GPU), never):
        pass


@pytest.mark.parametrize(
    ("how", "loads", "seats"),
    [
        (How(GPU), 1, 1),
        (How(GPU), 5, 2),
        (How(GPU, 3), 5, 3),
        (How(CPU, 2), 5, 2),
        (How(CPU, 2), 1, 1),
    ],
)
def test_on_a_gpu_there_is_a_place_to_get_ready(store, how, loads, seats):
    made = LocalEngine(store, how).seats(loads)
    assert len(made) == seats
    places = {seat.place(member) for seat in made for member in range(16)}
    assert len(places) == (16 if turn.takes_turns(how) else 16 * seats), "loads that take turns share their bars"
