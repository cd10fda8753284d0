"""Ctrl-C at any moment: no traceback, of the command or of its workers, and nobody stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STUDY = """
baseline = "plain"
seeds = 2
task = {name = "blobs", n_max = 60}
base = {model = "cnn_small(width=4)", epochs = 3000, batch_size = 16}
methods.plain = {}
methods.focal = {loss = "focal"}
"""
NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at processes through /proc")


def family(leader: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(session) == leader and state != "Z":
            found.append(int(folder.name))
    return found


def imports_torch(pid: int) -> bool:
    try:
        return "libtorch" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def own(leader):
    return imports_torch(leader)


def first_child(leader):
    return sum(map(imports_torch, family(leader))) >= 2


def second_child(leader):
    return sum(map(imports_torch, family(leader))) >= 3


@NEEDS_PROC
@pytest.mark.parametrize("moment", [own, first_child, second_child])
def test_no_traceback_while_anyone_imports(tmp_path, moment):
    study = tmp_path / "asked.toml"
    study.write_text(STUDY)
    process = subprocess.Popen(
        [sys.executable, "-m", "equipoise", "run", str(study), "--out", str(tmp_path / "out"), "--workers", "2",
         "--device", "cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not moment(process.pid) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=120)  # ends when nobody has the pipe any more
    assert process.returncode in (130, -signal.SIGINT), text
    assert "Traceback" not in text and "terminate called" not in text, text
    if process.returncode == 130:
        assert "The same command goes on from here" in text
    while family(process.pid) and time.monotonic() < deadline + 60:
        time.sleep(0.1)
    assert not family(process.pid)
