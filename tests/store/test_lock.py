"""Several processes on one study, never two studies at once; and what is cleared away at the end."""

import os
import subprocess
import sys
import time

import pytest

from equipoise.core import EquipoiseError
from equipoise.store import Store
from equipoise.store.lock import at_work
from equipoise.store.sweep import OLD

ONE, OTHER = {"name": "one", "seeds": (0, 1)}, {"name": "other", "seeds": (0, 1)}


def test_the_same_study_is_shared_and_another_is_refused(store):
    with at_work(store, ONE):
        with at_work(store, ONE):
            pass
        refused = pytest.raises(EquipoiseError, match=r"another study is being run in .*choose another folder")
        with refused, at_work(store, OTHER):
            pytest.fail("two studies at once")
        assert store.read_json("study.json")["name"] == "one"
        with at_work(store, ONE):
            pass
    with at_work(store, OTHER):
        assert store.read_json("study.json")["name"] == "other"


def test_alike_may_be_less_than_equal(store):
    with at_work(store, ONE), at_work(store, {**ONE, "seeds": (0, 1, 2)}, lambda a, b: a["name"] == b["name"]):
        assert store.read_json("study.json")["seeds"] == [0, 1], "the first has written it"


def test_a_damaged_study_file_is_written_anew(store):
    (store.path / "study.json").write_text("{")
    with at_work(store, ONE):
        assert store.read_json("study.json")["name"] == "one"


def test_processes_that_begin_together_agree(store):
    """Three at once, of two studies: all that get in have the study that is written."""
    program = (
        "import sys, time\nfrom equipoise.store import Store\nfrom equipoise.store.lock import at_work\n"
        "from equipoise.core import EquipoiseError\n"
        "store, name = Store(sys.argv[1]), sys.argv[2]\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    with at_work(store, {'name': name}):\n"
        "        time.sleep(1.0)\n"
        "        assert store.read_json('study.json')['name'] == name\n"
        "        print('in')\n"
        "except EquipoiseError:\n"
        "    print('out')\n"
    )
    command = [sys.executable, "-c", program, str(store.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, "ab"[i % 2]], **pipes) for i in range(3)]
    time.sleep(5)  # until all are ready
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert {p.returncode for p in processes} == {0} and "in" in told


# -- what is cleared away --------------------------------------------------------------------------------------------


def leave(store):
    """A checkpoint, half a result and half a file, of a process that is gone, and half a file of one that lives."""
    (store.scratch("0123") / "checkpoint.pt").parent.mkdir()
    (store.scratch("0123") / "checkpoint.pt").touch()
    (store.path / "unfinished" / "0456.result").mkdir()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    files = [store.path / f".report.md.{pid}" for pid in (gone.pid, os.getpid())]
    for file in [*files, store.path / ".notes"]:
        file.touch()
        os.utime(file, (0, time.time() - 2 * OLD))
    return files


def test_a_complete_study_clears_away_what_cannot_be_used(store):
    dead, living = leave(store)
    with at_work(store, ONE):
        pass
    assert not any((store.path / "unfinished").iterdir())
    assert not dead.exists() and living.exists() and (store.path / ".notes").exists()


def test_nothing_is_touched_while_anyone_is_at_work_or_after_an_error(store):
    dead, _ = leave(store)
    with at_work(store, ONE):
        with at_work(store, ONE):
            pass
        assert store.scratch("0123").exists() and dead.exists()
        store_of_tune = Store(store.path)
        with store_of_tune.claim("tune"):
            with pytest.raises(KeyError), at_work(store, ONE):
                raise KeyError
            assert store.scratch("0123").exists()
    (store.scratch("0789")).mkdir()
    with store.claim("tune"), at_work(store, ONE):
        pass
    assert store.scratch("0789").exists(), "a search for hyper-parameters is at work"
