"""A CPU on which bf16 kills: found out once, in a process of its own, and told before anything is trained."""

import os
import subprocess
from dataclasses import replace

import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.core.files import cache_folder
from equipoise.store import Store
from equipoise.study import How, Listener, RunTimes, Study
from equipoise.study.run import bf16
from equipoise.study.run.bf16 import VARIABLE, Finding, bf16_here, check_precision, slow_words, tried_out
from equipoise.study.run.job import jobs_of
from equipoise.study.run.runs import do_runs
from equipoise.study.run.workers import Workers
from equipoise.train import Recipe

CPU = torch.device("cpu")
ILL = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
ONLY_WITH = (
    "import os, signal; os.environ.get('ONEDNN_MAX_CPU_ISA') == 'AVX512_CORE' or os.kill(os.getpid(), signal.SIGILL)"
)


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine on which nothing was found out yet; gives the probes that are run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "taken away again")  # so that it is restored, whatever a test does
    monkeypatch.delenv(VARIABLE)
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    bf16_here.cache_clear()
    runs, really = [], subprocess.run
    monkeypatch.setattr(bf16.subprocess, "run", lambda *a, **k: runs.append(k["env"].get(VARIABLE)) or really(*a, **k))
    yield runs
    bf16_here.cache_clear()


@pytest.fixture
def recipe():
    return Recipe.make(
        {"model": "cnn_small(width=4)", "epochs": 1, "precision": "bf16"}, {"name": "blobs", "n_max": 60}
    )


def test_the_probe_runs_as_it_is():
    found = tried_out()
    assert found.problem is None or "was killed by SIG" in found.problem
    assert found.problem or 0.05 < found.slowdown < 100


@pytest.mark.parametrize(("slowdown", "warned"), [("3.25", True), ("1.05", False), ("0.6", False)])
def test_who_would_be_slower_in_bf16_is_told(slowdown, warned, recipe, monkeypatch, tmp_path):
    """Before anything is trained, and by nobody but who asks for bf16 on a CPU."""
    monkeypatch.setattr(bf16, "PROBE", f"print('slowdown {slowdown}')")
    said = []

    class Heard(Listener):
        def say(self, text, tone="plain"):
            said.append((text, tone))

    do_runs([("plain", recipe)], Store(tmp_path / "s").create(), How(CPU, 1), Heard())
    assert [tone for text, tone in said if "3.2 times as long" in text] == ["warning"] * warned
    assert slow_words([recipe], torch.device("cuda")) is None
    assert slow_words([replace(recipe, plan=replace(recipe.plan, precision="float32"))], CPU) is None


def test_a_recipe_in_bf16_is_refused_in_one_sentence(recipe, monkeypatch, machine, tmp_path):
    monkeypatch.setattr(bf16, "PROBE", ILL)
    with pytest.raises(EquipoiseError) as told:
        check_precision([recipe], CPU)
    text = str(told.value)
    assert "was killed by SIGILL (illegal instruction)" in text and 'write precision = "float32"' in text
    assert "\n" not in text and VARIABLE not in os.environ
    assert machine == [None, *bf16.SETS], "as it is, then with less and less"
    store = Store(tmp_path / "s")
    with pytest.raises(EquipoiseError, match="bf16"):
        Workers(jobs_of([recipe]), store.create(), How(CPU))
    with pytest.raises(EquipoiseError, match="bf16"):
        RunTimes(store, CPU).seconds(recipe)
    assert len(machine) == 5 and not store.records()


def test_workers_use_what_works(recipe, monkeypatch, machine):
    monkeypatch.setattr(bf16, "PROBE", ONLY_WITH)
    check_precision([recipe], CPU)
    assert os.environ[VARIABLE] == "AVX512_CORE"
    check_precision([recipe], CPU)
    assert machine == [None, "AVX512_CORE_FP16", "AVX512_CORE_BF16", "AVX512_CORE"]


def test_who_has_chosen_is_told_what_to_choose(recipe, monkeypatch):
    monkeypatch.setattr(bf16, "PROBE", ONLY_WITH)
    monkeypatch.setenv(VARIABLE, "AVX512_CORE_AMX")
    with pytest.raises(EquipoiseError, match="set ONEDNN_MAX_CPU_ISA=AVX512_CORE in the environment"):
        check_precision([recipe], CPU)
    assert os.environ[VARIABLE] == "AVX512_CORE_AMX"


def test_it_is_found_out_once(recipe, monkeypatch, machine):
    monkeypatch.setattr(bf16, "PROBE", "")
    check_precision([recipe], CPU)
    bf16_here.cache_clear()  # as another process has it
    monkeypatch.setattr(bf16, "PROBE", ILL)
    assert bf16_here() == Finding() and len(machine) == 1
    bf16_here.cache_clear()
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert bf16_here().problem, "found out anew where PyTorch computes in another way"
    for file in cache_folder().glob("bf16-*.json"):
        file.write_text("{")
    bf16_here.cache_clear()
    assert bf16_here().problem, "a damaged file is as none"


def test_nothing_is_tried_where_bf16_is_not_asked_for(machine, recipe):
    plain = Study.from_dict({"baseline": "a", "task": {"name": "blobs"}, "methods": {"a": {}, "b": {"loss": "focal"}}})
    check_precision(plain.methods.values(), CPU)
    check_precision([recipe], torch.device("cuda"))
    assert machine == []
