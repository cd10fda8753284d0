"""One search by eight processes, each with a folder of its own, that meet in a real PostgreSQL."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from equipoise.core import EquipoiseError
from equipoise.store import Record, Store
from equipoise.study import Study
from equipoise.study.run.job import jobs_of
from equipoise.study.tune import company
from equipoise.study.tune.aim import Aim
from equipoise.study.tune.company import Shared, shown_url, with_driver

PROGRAM = Path(__file__).parent / "programs" / "shared_tuning.py"
PROCESSES, TRIALS, METHODS = 8, 8, ("plain", "weighted")


def programs_of_postgresql():
    """Where they are; Debian has them off the PATH."""
    on_path = shutil.which("pg_ctl")
    found = [Path(on_path).parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return found[-1] if found else None


@pytest.fixture(scope="module")
def url():
    """A server of our own, that listens on a socket in its folder; it refuses to be root's."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'equipoise[postgres]'")
    programs = programs_of_postgresql()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="equipoise-postgresql-"))  # where others than root can go, too
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    if user:
        shutil.chown(folder, "nobody", "nogroup")

    def pg_ctl(*options):
        command = [programs / "pg_ctl", "-D", folder / "data", *options]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, **user)

    try:
        pg_ctl("initdb", "-o", "--username=tuner --auth=trust --no-sync")
        pg_ctl("start", "-l", folder / "log", "-o", f"-k {folder} -c listen_addresses='' -c fsync=off")
        yield f"postgresql://tuner:secret@/postgres?host={folder}"
        pg_ctl("stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def folder(url, tmp_path_factory):
    """What eight processes came to, of which one was killed, and one alone."""
    folder = tmp_path_factory.mktemp("shared")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, PROGRAM, folder, url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def outcome(folder):
    return json.loads((folder / "outcome.json").read_text())


def test_eight_processes_come_to_what_one_comes_to(folder):
    alone = outcome(folder / "alone")
    for number in range(PROCESSES):
        place = folder / str(number)
        assert (place / "killed").exists() or outcome(place) == alone
    for method in METHODS:
        assert len({key for key, _, _ in alone[method]}) == TRIALS  # to the trial, and none twice


def test_no_run_is_repeated_and_the_killed_one_is_done_by_another(folder):
    places = [folder / str(number) for number in range(PROCESSES)]
    trained = [{record.key for record in Store(place).records()} for place in places]
    assert set(Counter(key for keys in trained for key in keys).values()) == {1}
    assert set().union(*trained) == {record.key for record in Store(folder / "alone").records()}
    (killed,) = [(place / "killed").read_text() for place in places if (place / "killed").exists()]
    assert any(killed in keys for keys in trained)
    assert sum(bool(keys) for keys in trained) > 2


# -- what is shared ----------------------------------------------------------------------------------------------------


@pytest.fixture
def job():
    study = {"baseline": "a", "seeds": 1, "task": {"name": "blobs"}, "base": {"model": "cnn_small", "epochs": 1}}
    methods = {"a": {}, "b": {"loss": "focal"}}
    return jobs_of(recipe for _, recipe in Study.from_dict({**study, "methods": methods}).recipes())[0]


@pytest.fixture
def shared(url, tmp_path, request):
    """Makes one of those that share a search, with a store of its own."""
    made = []

    def make(most=1):
        store = Store(tmp_path / str(len(made))).create()
        made.append(Shared(url, request.node.name, store, Aim("accuracy"), most))
        return made[-1]

    yield make
    for one in made:
        one.close()


def record_of(job, value=0.5):
    return Record(
        key=job.training.key, recipe=job.training.to_dict(), state="finished", class_names=(), class_counts=(), data="",
        parameters=0, seconds=1.0, ended="", versions={}, device="",
        metrics={"valid_accuracy": value, "train_loss": 1.0},
        curves={"valid_accuracy": [float("nan"), value], "train_loss": [2.0, 1.0]},
    )  # fmt: skip


def test_a_job_is_taken_by_one_and_told_to_all(shared, job):
    one, other = shared(), shared()
    assert one.taken([job]) == [job] and other.taken([job]) == []
    assert one.taken([job]) == [job], "it is still ours"
    one.store.put(record_of(job))
    one.done(job)
    assert other.taken([job]) == [], "it is done"
    assert other.has_news([job.training.key]) is False and other.has(job.training.key)
    assert other.get(job.training.key).curves["valid_accuracy"][1] == 0.5
    assert set(other.get(job.training.key).curves) == {"valid_accuracy"}


def test_the_claims_of_a_process_end_with_its_connection(shared, job):
    one, other = shared(), shared()
    assert one.taken([job]) and not other.taken([job])
    one.close()  # as the system does for a process that is killed
    until = time.monotonic() + 60
    while not (taken := other.taken([job])):  # the server takes a moment to notice
        assert time.monotonic() < until
        time.sleep(0.01)
    assert taken == [job]


def test_what_a_process_had_done_before_it_was_killed_is_told_by_the_next(shared, job):
    one = shared()
    one.store.put(record_of(job))
    assert one.taken([job]) == [] and one.has(job.training.key)


def test_no_more_is_taken_than_there_are_workers(shared, job):
    assert shared(most=0).taken([job]) == []


# -- without a server --------------------------------------------------------------------------------------------------


def test_a_missing_driver_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr("equipoise.core.extras.find_spec", lambda name: None)
    with pytest.raises(EquipoiseError, match=r"needs psycopg, .*pip install 'equipoise\[postgres\]'"):
        with_driver("postgresql://somewhere/db")


def test_urls_of_other_databases_and_drivers_are_left_alone():
    for url in ("sqlite:///x.db", "postgresql+pg8000://somewhere/db", "mysql://somewhere/db"):
        assert with_driver(url) == url


def test_passwords_are_not_shown():
    assert shown_url("postgresql://me:secret@host/db") == "postgresql://me:***@host/db"
    assert shown_url("nonsense") == "nonsense"


def test_a_server_that_does_not_answer_is_a_sentence(tmp_path):
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'equipoise[postgres]'")
    with pytest.raises(EquipoiseError, match=r"the storage postgresql://me:\*\*\*@.* cannot be opened"):
        company._connected("postgresql://me:secret@127.0.0.1:9/db?connect_timeout=2")
