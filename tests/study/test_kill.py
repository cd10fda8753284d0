"""A study killed at any moment and run again ends with the same table, and no finished run is done twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STUDY = """
question = "Does a killed study end as one never killed?"
baseline = "plain"
seeds = 2
task = {name = "digits", imbalance = "long_tailed", ratio = 20}
base = {model = "cnn_small", epochs = 10}
methods.plain = {}
methods.class_balanced = {weighting = "effective_number(beta=0.999)"}
methods.mfw_drw = {mix = "mfw(alpha=1.0)", weighting = "effective_number(beta=0.999, start=0.8)"}
methods.adjusted = {posthoc = "logit_adjust(tau=1.0)"}
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "kill.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of the study when nobody disturbs it, and the seconds it takes here."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "kill.toml").write_text(STUDY)
    began = time.monotonic()
    finish(folder / "kill.toml", folder / "out")
    return table(folder / "out"), time.monotonic() - began


def start(study: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "equipoise", "run", study, "--out", out, "--workers", "2"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def finish(study: Path, out: Path) -> str:
    process = start(study, out)
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    return text


def finished_runs(out: Path) -> dict[str, int]:
    """Each finished run and when it was written, to the nanosecond."""
    return {p.parent.name: p.stat().st_mtime_ns for p in out.glob("runs/*/record.json")}


def table(out: Path) -> list[str]:
    """results.csv without the seconds, the only column that time may change."""
    rows = [line.split(",") for line in (out / "results.csv").read_text().splitlines()]
    drop = rows[0].index("seconds")
    return [",".join(v for i, v in enumerate(row) if i != drop) for row in rows]


def wait_for_a_run(process: subprocess.Popen, out: Path) -> None:
    """Until a run is begun or taken up again, or the study has ended."""
    began = time.time()
    while process.poll() is None and not any(_changed(path) > began for path in out.glob("unfinished/*/*")):
        time.sleep(0.01)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # its run ended just now
        return 0.0


@pytest.mark.slow
def test_killed_many_times(study, whole, tmp_path):
    """At random points of the time a whole study takes here, half of them once a run is under way.

    A study that gets done is begun anew elsewhere.
    """
    expected, seconds = whole
    rng = random.Random(0)
    kills = under_way = folders = 0
    wanted = 3  # of about fifteen seconds each; benchmarks/attack.py does hundreds
    while kills < wanted:
        out, seen = tmp_path / f"killed{folders}", {}
        folders += 1
        while kills < wanted and len(seen) < 8:
            process = start(study, out)
            if rng.random() < 0.5:
                time.sleep(rng.uniform(0.1, 0.9) * seconds)
            else:  # where starting takes most of the time, as with CUDA, no other moment falls into a run
                wait_for_a_run(process, out)
                time.sleep(rng.uniform(0, 0.3))
            os.killpg(process.pid, signal.SIGKILL) if rng.random() < 0.5 else process.kill()  # all, or the parent alone
            process.communicate()
            kills += 1
            under_way += any(out.glob("unfinished/*"))
            now = finished_runs(out)
            assert now.items() >= seen.items(), "a finished run was lost or done again"
            seen = now
        finish(study, out)
        assert finished_runs(out).items() >= seen.items()
        assert len(finished_runs(out)) == 8
        assert table(out) == expected
    assert under_way, "no kill came in the middle of a run: the test shows nothing"


@pytest.mark.slow
def test_two_at_once_share_the_work(study, whole, tmp_path):
    first, second = start(study, tmp_path / "both"), start(study, tmp_path / "both")
    for process in (first, second):
        text, _ = process.communicate(timeout=300)
        assert process.returncode == 0, text
    assert len(finished_runs(tmp_path / "both")) == 8
    assert table(tmp_path / "both") == whole[0]


@pytest.mark.slow
def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(study, tmp_path):
    study.write_text(STUDY.replace("epochs = 10", "epochs = 400"))
    process = start(study, tmp_path / "out")
    deadline = time.monotonic() + 60
    while not any((tmp_path / "out").glob("unfinished/*/checkpoint.pt")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command goes on from here" in text and "equipoise run" in text
    assert "Traceback" not in text
    assert any((tmp_path / "out").glob("unfinished/*/checkpoint.pt"))
