"""`benchmarks/papers.py` keeps what it has trained, whatever happens to it and its folder; what it wants is there."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from equipoise.data import load_task
from equipoise.reproduction import read_records

from .loading import loaded

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "papers.py"
ANALYZED = SCRIPT.with_name("analyzed.py")
STUDY = """
baseline = "plain"
seeds = 3
task = {name = "digits", imbalance = "long_tailed", ratio = 20, valid = 0}
base = {model = "cnn_small", epochs = EPOCHS}
methods = {plain = {}, focal = {loss = "focal"}}
"""
PLAIN_TOO = 'plain = {}, adjusted = {posthoc = "logit_adjust"}'


def begun(folder, epochs):
    (folder / "small.toml").write_text(STUDY.replace("EPOCHS", str(epochs)))
    asked = ["--studies", str(folder / "small.toml"), "--out", str(folder / "out"), "--work", str(folder / "work")]
    command = [sys.executable, str(SCRIPT), *asked, "--device", "cpu", "--workers", "1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def runs_in(folder):
    path = folder / "out" / "records.jsonl"
    return [run for study in read_records(path).values() for run in study.runs] if path.exists() else []


def wait_for(there, process):
    end = time.monotonic() + 120
    while not there():
        assert process.poll() is None and time.monotonic() < end, process.stdout.read()
        time.sleep(0.05)


@pytest.mark.slow
def test_what_was_trained_is_kept_though_it_is_killed(tmp_path):
    process = begun(tmp_path, epochs=20)
    wait_for(lambda: runs_in(tmp_path), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 1 <= len(runs_in(tmp_path)) < 6 and not any(run.error for run in runs_in(tmp_path))


@pytest.mark.slow
def test_a_folder_that_was_cleared_meanwhile_has_all_in_the_end(tmp_path):
    process = begun(tmp_path, epochs=10)
    wait_for(lambda: runs_in(tmp_path), process)
    shutil.rmtree(tmp_path / "out")
    said = process.communicate()[0]
    assert process.returncode == 0 and "small: 6 of 6 runs done, of which 0 failed" in said, said
    assert sorted((run.method, run.seed) for run in runs_in(tmp_path)) == [
        (method, seed) for method in ("focal", "plain") for seed in range(3)
    ]


@pytest.mark.slow
def test_what_was_trained_is_analyzed_without_another_training(tmp_path):
    begun(tmp_path, epochs=1).communicate(timeout=120)
    before = sorted((tmp_path / "work" / "runs").iterdir())
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "analyzed")]
    command = [sys.executable, str(ANALYZED), str(tmp_path / "small.toml"), *places, "--images", "200"]
    subprocess.run([*command, "--device", "cpu"], check=True, capture_output=True)
    analysis = json.loads((tmp_path / "analyzed" / "small" / "analysis.json").read_text())
    assert len(analysis["predictions"]["runs"]) == 6 and analysis["representations"]["cka"]
    assert (tmp_path / "analyzed" / "small" / "report.html").exists()
    assert sorted((tmp_path / "work" / "runs").iterdir()) == before and len(before) == 6


def test_what_is_wanted_are_methods_of_studies():
    steps = loaded(SCRIPT).wanted_steps()
    named = {name for step in steps for name in step.leave_out}
    trained = [(study.name, method) for step in steps for study in step.read() for method in study.methods]
    assert named <= {method for _, method in trained} and len(set(trained)) > 50


def test_what_is_missing_is_counted_by_images(tmp_path, monkeypatch, capsys):
    (tmp_path / "small.toml").write_text(STUDY.replace("EPOCHS", "4").replace("plain = {}", PLAIN_TOO))
    asked = ["--studies", str(tmp_path / "small.toml"), "--work", str(tmp_path / "work"), "--missing"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *asked])
    papers = loaded(SCRIPT)
    papers.main()
    told = capsys.readouterr().out.splitlines()[-1].split()
    # two trainings, which the correction shares, of three seeds; 1e6 images would be 1
    assert told == ["small", "6", "0", "0"]
    (recipe,) = {r for _, r in papers.study_of(str(tmp_path / "small.toml"), 1).recipes() if r.loss.startswith("focal")}
    images = len(load_task("digits", imbalance="long_tailed", ratio=20, valid=0).train)
    assert papers.images_of(recipe) == 4 * images
