"""Work for many files: the same results by threads and by processes, from wherever it is asked for."""

import multiprocessing
import os

import pytest

from equipoise.data import parallel
from equipoise.data.parallel import in_parallel


@pytest.fixture
def many_cores(monkeypatch):
    monkeypatch.setattr(parallel, "FEW_CORES", 1)
    monkeypatch.setattr(parallel, "MANY", dict.fromkeys(parallel.MANY, 10))


def square(i: int) -> tuple[int, int]:
    return i * i, os.getpid()


@pytest.mark.parametrize(("files", "elsewhere"), [(9, False), (10, True)])
def test_many_files_are_for_processes(many_cores, files, elsewhere):
    results = in_parallel(square, range(5), files, threads=2)
    assert [value for value, _ in results] == [0, 1, 4, 9, 16]
    assert all((process != os.getpid()) == elsewhere for _, process in results)


def test_on_few_cores_threads_do_it(monkeypatch):
    monkeypatch.setattr(parallel, "core_count", lambda: 3)
    assert {process for _, process in in_parallel(square, range(3), 10**6, threads=2)} == {os.getpid()}


def test_a_process_that_may_start_none_has_threads(many_cores, monkeypatch):
    monkeypatch.setattr(multiprocessing.current_process(), "_config", {"daemon": True})
    assert {process for _, process in in_parallel(square, range(3), 100, threads=2)} == {os.getpid()}


def test_nothing_to_do(many_cores):
    assert in_parallel(square, [], 0, threads=2) == []


def fail(i: int) -> None:
    raise ValueError(f"number {i}")


@pytest.mark.parametrize("files", [1, 100])
def test_what_goes_wrong_is_told(many_cores, files):
    with pytest.raises(ValueError, match="number 0"):
        in_parallel(fail, range(2), files, threads=1)
