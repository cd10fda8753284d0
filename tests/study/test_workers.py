"""Workers that die, by real signals, and want of memory: one run is lost, the study goes on and says so."""

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.store import Store
from equipoise.store.convergence import Convergence
from equipoise.study import How, Listener, Study, jobs_of, run_study
from equipoise.study.run import child as child_file
from equipoise.study.run import job as jobs_file
from equipoise.study.run import local as local_file
from equipoise.study.run import workers as workers_file
from equipoise.study.run.child import NO_GUARD, Child, Death, Failed, Trouble, ask
from equipoise.study.run.job import record_death
from equipoise.study.run.trouble import ran_out_of_memory
from equipoise.train import Recipe

CPU = torch.device("cpu")
STRANGE = Path(__file__).parent / "programs" / "strange.py"
STUDY = """
question = "Does one bad method spoil the others?"
baseline = "plain"
seeds = 1
task = {name = "blobs", n_max = 60}
base = {model = "cnn_small(width=4)", epochs = 2, batch_size = 16}
[methods.plain]
"""


def run(arguments, tmp_path, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=os.environ | environment,
        check=False,
    )


@pytest.fixture
def asked(tmp_path):
    def write(methods):
        path = tmp_path / "asked.toml"
        path.write_text(STUDY + methods)
        return path

    return write


def states(folder):
    """State and error of each run, by the text of the dial that makes its method."""
    records = [json.loads(path.read_text()) for path in folder.glob("runs/*/record.json")]
    return {(r["recipe"]["loss"], r["recipe"]["posthoc"]): (r["state"], r["error"]) for r in records}


PLAIN = "cross_entropy(loss_scale=1.0)"


# -- with real processes and signals ---------------------------------------------------------------------------------


def test_who_dies_twice_has_failed_and_the_others_go_on(asked, tmp_path):
    path = asked(
        '[methods.ill]\nloss = "strange"\n[methods.once]\nloss = "strange(how=\'once\')"\n'
        '[methods.corrected]\nposthoc = "strange_posthoc"\n[methods.adjusted]\nposthoc = "logit_adjust"\n'
    )
    command = [STRANGE, "run", path, "--out", "out", "--workers", "2", "--device", "cpu"]  # where each has a process
    done = run(command, tmp_path, MARKER=str(tmp_path / "marker"))
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    found = states(tmp_path / "out")
    state, error = found["strange(how='SIGILL')", None]
    assert state == "failed" and "was killed by SIGILL (illegal instruction)" in error and "twice" in error
    state, error = found[PLAIN, "strange_posthoc(how='exit')"]
    assert state == "failed" and "ended with exit code 0" in error
    assert found["strange(how='once')", None][0] == "finished"
    assert found[PLAIN, None][0] == found[PLAIN, "logit_adjust(tau=1.0, prior=None)"][0] == "finished"
    said = " ".join(done.stdout.split())
    assert "again once · seed 0: its worker process was killed by SIGSEGV (segmentation fault)" in said
    assert "failed ill · seed 0: its worker process was killed by SIGILL" in said
    assert "2 runs failed" in said and "--retry" in said


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=["python", "cuda", "cpu", "system"],
)
def test_want_of_memory_is_no_failure_of_a_method(tmp_path, monkeypatch, error):
    store, (job,) = Store(tmp_path / "s").create(), jobs_of([Recipe.make({"model": "cnn_small"}, {"name": "blobs"})])
    monkeypatch.setattr(jobs_file, "fitting_of", Mock(side_effect=error))
    with pytest.raises(type(error)):
        jobs_file.do(job, store, How(CPU), lambda *_: None, lambda: False)
    assert not store.records()
    monkeypatch.setattr(jobs_file, "fitting_of", Mock(side_effect=RuntimeError("a shape does not fit")))
    jobs_file.do(job, store, How(CPU), lambda *_: None, lambda: False)
    assert "a shape does not fit" in store.get(job.training.key).error


def test_memory_that_really_runs_out_is_seen():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert ran_out_of_memory(caught.value)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("how", ["SIGABRT", "assert"])
def test_of_a_pack_only_the_guilty_one_fails(asked, tmp_path, how):
    path = asked(f'[methods.focal]\nloss = "focal"\n[methods.bad]\nloss = "strange(how={how!r})"\n')
    done = run([STRANGE, "run", path, "--out", "out", "--device", "cuda"], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    found = {loss: state for (loss, _), (state, _) in states(tmp_path / "out").items()}
    bad = found.pop(f"strange(how={how!r})")
    assert bad == "failed" and set(found.values()) == {"finished"}


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import torch\nfrom equipoise.store import Store\n"
        "from equipoise.study import How, Listener, Study, run_study\n"
        "plain = {'baseline': 'a', 'seeds': 1, 'task': {'name': 'blobs', 'n_max': 60},\n"
        "         'base': {'model': 'cnn_small(width=4)', 'epochs': 1}, 'methods': {'a': {}, 'b': {'loss': 'focal'}}}\n"
        "run_study(Study.from_dict(plain), Store('out'), How(torch.device('cpu'), 2), Listener())\n"
    )
    done = run([script], tmp_path)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()
    assert done.stderr.count("Traceback") == 1, "the parent's own, and none of its workers"
    assert 'if __name__ == "__main__":' in last[-1] and "imports your script" in last[-2]


def test_what_is_asked_of_a_child_may_fail_or_kill_it():
    child = Child(CPU)
    try:
        assert child.ask(os.path.join, "a", "b") == "a/b"
        with pytest.raises(Failed, match="invalid literal"):
            child.ask(int, "x")
        assert child.fit
        with pytest.raises(Failed, match="ended with exit code 7"):
            child.ask(os._exit, 7)
        assert not child.fit
    finally:
        child.close()


def test_a_measurement_that_kills_is_replaced_by_what_is_usual(tmp_path):
    with pytest.raises(Failed, match="SIGABRT"):
        ask(CPU, os.abort)
    assert ask(CPU, abs, -1) == 1


# -- what follows from what a worker tells, without processes --------------------------------------------------------


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """A pool of workers that are told what to do by `behave(load, worker)`, which gives their messages."""
    study = Study.from_dict(
        {
            "baseline": "a",
            "seeds": 2,
            "task": {"name": "blobs", "n_max": 60},
            "base": {"model": "cnn_small(width=4)", "epochs": 2},
            "methods": {"a": {}, "b": {"loss": "focal"}, "adjusted": {"posthoc": "logit_adjust"}},
        }
    )
    store = Store(tmp_path / "s").create()

    def make(behave, count=1, pack=1):
        jobs = jobs_of(recipe for _, recipe in study.recipes())
        monkeypatch.setattr(local_file, "rested", lambda device: Scripted(behave))
        monkeypatch.setattr(local_file, "measured_pack_size", lambda *_: pack)
        monkeypatch.setattr(local_file, "wait", lambda sources, timeout: sources)
        monkeypatch.setattr(workers_file, "RETRY_SECONDS", 0.0)
        monkeypatch.setattr(
            workers_file, "loads_of", lambda jobs, device, size: [jobs[i : i + size] for i in range(0, len(jobs), size)]
        )
        return workers_file.Workers(jobs, store, How(CPU, count)), jobs, store

    return make


class Scripted:
    """A child that does as it is told to by a function."""

    def __init__(self, behave):
        self.behave, self.busy, self.fit = behave, False, True
        self.pipe, self.process = object(), SimpleNamespace(sentinel=object())

    def order(self, work, load, path, how):
        self.busy, self.told = True, self.behave(load)

    def messages(self):
        self.busy = False
        self.fit = self.told[-1][0] == "answer"
        return self.told

    def stop(self): ...

    def close(self): ...


def finish(store, load):
    for job in load:
        for recipe in job.recipes:
            if not store.has(recipe.key):
                record_death(recipe, store, "stands for any record", CPU)
    return [("begun", None), ("answer", [True] * len(load))]


def test_members_of_a_pack_that_died_are_tried_one_by_one(pool):
    loads = []

    def behave(load):
        loads.append(len(load))
        guilty = any(job.training == jobs[1].training for job in load)
        return [("died", Death(-11, True))] if guilty else finish(store, load)

    workers, jobs, store = pool(behave, pack=4)
    events = list(workers.events())
    assert loads == [4, 1, 1, 1, 1], "the guilty one is found at its second death"
    assert [e.what for e in events].count("done") == 4 and [e.what for e in events].count("again") == 4
    assert "SIGSEGV" in store.get(jobs[1].training.key).error
    assert all("stands for" in store.get(job.training.key).error for job in jobs if job is not jobs[1])


def test_a_pack_without_room_is_halved(pool):
    loads = []

    def behave(load):
        loads.append(len(load))
        return [("error", Trouble("CUDA out of memory", memory=True))] if len(load) > 2 else finish(store, load)

    workers, _, store = pool(behave, pack=4)
    events = list(workers.events())
    assert loads == [4, 2, 2] and [e.what for e in events].count("done") == 4
    assert not any(e.what == "fatal" for e in events)


@pytest.mark.parametrize(
    "trouble", [("error", Trouble("no memory", memory=True)), ("died", Death(-9, True))], ids=["raised", "killed"]
)
def test_a_run_short_of_memory_is_tried_again_alone(pool, trouble):
    order = []

    def behave(load):
        order.append(load[0].training.key)
        short = load[0] is jobs[0] and sum(bool(seat.load) for seat in workers.seats) + bool(workers.waiting) > 1
        return [trouble] if short else finish(store, load)

    workers, jobs, store = pool(behave, count=2)
    events = list(workers.events())
    assert order[0] == order[-1] == jobs[0].training.key and len(order) == 5
    assert all(job.finished_in(store) for job in jobs) and not any(e.what == "fatal" for e in events)
    assert "stands for" in store.get(jobs[0].training.key).error


def test_a_broken_device_is_as_a_death(pool):
    loads = []

    def behave(load):
        loads.append(len(load))
        guilty = any(job.training == jobs[1].training for job in load)
        broken = Trouble("CUDA error: device-side assert triggered\nmore", is_broken=True)
        return [("error", broken)] if guilty else finish(store, load)

    workers, jobs, store = pool(behave, pack=4)
    events = list(workers.events())
    assert loads == [4, 1, 1, 1, 1] and not any(e.what == "fatal" for e in events)
    told = store.get(jobs[1].training.key).error
    assert "could not go on: CUDA error: device-side assert triggered" in told and "more" not in told


def test_what_never_has_memory_is_left_undone_and_told_at_the_end(pool):
    def behave(load):
        return [("error", Trouble("x", memory=True))] if load[0] is jobs[0] else finish(store, load)

    workers, jobs, store = pool(behave)
    events = list(workers.events())
    assert events[-1].what == "fatal" and "1 run was not done" in events[-1].error
    assert not store.has(jobs[0].training.key) and all(job.finished_in(store) for job in jobs[1:])


def test_a_death_in_a_post_hoc_method_costs_that_method_alone(pool):
    def behave(load):
        (job,) = load
        last = job.recipes[-1].key
        if len(job.recipes) > 1 and not store.has(last):
            finish(store, [replace(job, recipes=job.recipes[:-1])])
            return [("died", Death(1, True))]
        return finish(store, load)

    workers, jobs, store = pool(behave)
    list(workers.events())
    corrected = next(job for job in jobs if len(job.recipes) > 1)
    assert "stands for" in store.get(corrected.training.key).error
    assert "exit code 1" in store.get(corrected.recipes[-1].key).error


def test_workers_that_cannot_start_end_the_study(pool):
    workers, _, store = pool(lambda load: [("died", Death(1, False))])
    assert next(workers.events()).what == "fatal" and not store.records()
    workers, _, _ = pool(lambda load: [("died", Death(NO_GUARD, False))])
    with pytest.raises(EquipoiseError, match="imports your script"):
        list(workers.events())


def test_what_another_process_has_done_counts(pool):
    workers, jobs, store = pool(lambda load: finish(store, load))
    finish(store, jobs[2:])
    whats = [e.what for e in workers.events()]
    assert whats.count("had") == 2 and whats.count("done") == 2


def test_workers_stay_for_the_longer_trainings_and_end_with_the_study(tmp_path, monkeypatch):
    """Those that wait would keep a finished study's images in memory and on the disk."""
    made = []
    start = child_file.Child.__init__
    monkeypatch.setattr(child_file.Child, "__init__", lambda self, device: made.append(self) or start(self, device))
    base = {"model": "cnn_small(width=4)", "epochs": 1, "batch_size": 16}
    plain = {"baseline": "plain", "seeds": 1, "task": {"name": "blobs", "n_max": 60}, "base": base}
    study = Study.from_dict({**plain, "methods": {"plain": {}, "focal": {"loss": "focal"}}})
    store = Store(tmp_path / "runs")
    run_study(study, store, How(CPU, workers=2, pilot=True), Listener())
    longer = store.document(Convergence).runs
    assert len(longer) == 2 and all(store.has(run.key) for run in longer)
    assert 1 <= len(made) <= 2
    assert not any(child.process.is_alive() for child in made)
