"""`equipoise tune` as a user meets it: on a folder of images, and where the disk is full."""

import os
import subprocess
import sys

import numpy as np
import pytest

STUDY = """
baseline = "plain"
seeds = 1
task = {name = "blobs", n_max = 40, valid = 0.2}
base = {model = "cnn_small(width=4)", epochs = 1, batch_size = 8}
[tune]
trials = 2
seeds = 1
sampler = "random"
[tune.space]
lr = [0.05, 0.1]
[methods.plain]
[methods.adjusted]
posthoc = "logit_adjust(prior=(0.5, 0.3, 0.2))"
"""


def equipoise(*arguments, cwd):
    command = [sys.executable, "-m", "equipoise", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=200)


def test_a_folder_of_images_is_tuned_and_its_study_can_be_run(tmp_path):
    image = pytest.importorskip("PIL.Image")
    draw = np.random.default_rng(0)
    for name, count in (("cat", 12), ("dog", 9), ("owl", 8)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(count):
            pixels = draw.integers(0, 255, (9, 9, 3), dtype=np.uint8)
            image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    text = STUDY.replace('name = "blobs", n_max = 40', """name = "folder(path='photos', size=8)\"""")
    (tmp_path / "asked.toml").write_text(text)
    done = equipoise("tune", "asked.toml", "--workers", 1, "--sampler", "grid", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 trials (grid) of 1 run for each of 2 methods" in done.stdout and "1 seed at the best" in done.stdout
    plan = equipoise("plan", "runs/asked_tuning/tuned.toml", "--workers", 1, cwd=tmp_path)
    assert plan.returncode == 0, plan.stdout + plan.stderr
    assert "1 method against plain" in plan.stdout and "could not be measured" not in plan.stdout


@pytest.mark.parametrize(
    ("small_disk", "message"),
    [("size=60k", "the disk is full"), ("size=4m,ro", "is read-only")],
    indirect=["small_disk"],
)
def test_a_full_or_read_only_disk_is_a_sentence(tmp_path, small_disk, message):
    (tmp_path / "asked.toml").write_text(STUDY)
    done = equipoise("tune", "asked.toml", "--out", small_disk / "out", "--workers", 1, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and done.stderr.startswith("error:") and message in done.stderr
