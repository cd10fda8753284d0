"""Which files a study walks through, in the order in which a function of theirs is first called.

    python benchmarks/trace_study.py [STUDY.toml]     # by default a small study of digits, with one worker

Prints, for the command and for each process it starts, the files in that order, and at the end how often the way
leads from one folder into another.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

STUDY = """
question = "Which way does a study go?"
baseline = "plain"
seeds = 1
task = {name = "digits"}
base = {model = "cnn_small", epochs = 1}
methods.plain = {}
methods.focal = {loss = "focal"}
methods.adjusted = {posthoc = "logit_adjust"}
"""
WATCH = """
import os, sys, threading
seen, out = set(), os.path.join(os.environ["TRACED"], f"{os.getpid()}.txt")
def importing(frame):
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
def first(frame, event, arg):
    if event == "call" and frame.f_code.co_flags & 1 and not frame.f_code.co_name.startswith("<"):
        name = frame.f_code.co_filename
        at = name.rfind("equipoise/")
        if at >= 0 and name not in seen and not importing(frame):
            seen.add(name)
            with open(out, "a") as file:
                print(name[at + 10:], frame.f_code.co_name, file=file)
sys.setprofile(first)
threading.setprofile(first)
"""


def main() -> None:
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "sitecustomize.py").write_text(WATCH)
        (place / "traced").mkdir()
        study = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else place / "small.toml"
        if len(sys.argv) == 1:
            study.write_text(STUDY)
        paths = os.pathsep.join([folder, str(root), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "TRACED": str(place / "traced")}
        command = [sys.executable, "-m", "equipoise", "run", str(study), "--out", str(place / "out"), "--workers", "1"]
        subprocess.run([*command, "--device", "cpu"], env=environment, check=True, stdout=subprocess.DEVNULL)
        for path in sorted((place / "traced").iterdir(), key=lambda p: p.stat().st_ctime_ns):
            show(path.read_text().splitlines())


def show(lines: list[str]) -> None:
    print(f"\n{len(lines)} files")
    for line in lines:
        print(f"  {line}")
    folders = [line.split("/")[0] for line in lines]
    beside_core = [folder for folder in folders if folder != "core"]  # every folder calls its small helpers
    changes, without_core = (sum(a != b for a, b in pairwise(way)) for way in (folders, beside_core))
    print(f"  {changes} changes of folder, {without_core} without those to core and back")


if __name__ == "__main__":
    main()
