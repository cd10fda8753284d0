"""Processes that torchrun starts again share a server of keys with those that died; they must not take them for living.

A thread stands for a process here; tests/train/test_team.py kills real ones.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch.distributed import HashStore, TCPStore

from equipoise.core import EquipoiseError
from equipoise.study.run.meeting import agreed_name


def server():
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60))


def names(store, size, order):
    """The name each process finds, by rank; they arrive in this order."""
    clients = [TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=60)) for _ in order]
    with ThreadPoolExecutor(size) as threads:
        found = {rank: threads.submit(agreed_name, clients[rank], rank, size) for rank in order}
    return [found[rank].result() for rank in range(size)]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_each_start_has_one_name_of_its_own(order):
    store = server()
    starts = [names(store, 4, order) for _ in range(3)]
    assert [len(set(start)) for start in starts] == [1] * 3
    assert len({start[0] for start in starts}) == 3


def test_a_start_may_have_another_number_of_processes():
    store = server()
    for size in (4, 2, 3, 1):
        assert len(set(names(store, size, tuple(range(size))))) == 1


def test_who_died_while_it_waited_is_not_waited_for():
    store = server()
    for rank in (1, 2):  # an earlier start came so far
        store.set(f"equipoise/here/{rank}", f"dead {rank}")
    assert len(set(names(store, 3, (0, 2, 1)))) == 1


def test_who_does_not_come_is_named():
    with pytest.raises(EquipoiseError, match="1 of 3 processes came within.*number 1: see why"):
        agreed_name(HashStore(), 0, 3, timedelta(seconds=0.1))


def test_one_process_waits_for_nobody():
    assert agreed_name(HashStore(), 0, 1)
