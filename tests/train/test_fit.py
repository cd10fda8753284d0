"""When checkpoints are written; and that one that cannot be used is thrown away, as if it had never been."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from equipoise.core.files import sealed, unsealed
from equipoise.data import load_task
from equipoise.train import Fitting, Recipe, Run, fit_one
from equipoise.train.fit import Saving


def fitting(folder: Path | None, **options):
    recipe = Recipe.make({"epochs": 2, "ema": 0.9, **options}, {"name": "blobs"})
    task = load_task("blobs", n_max=40)
    return Fitting(Run(recipe, task, torch.device("cpu")), lambda x, _: {"mean": float(x.double().mean())}, folder)


def content_of(folder: Path) -> dict:
    return torch.load(io.BytesIO(unsealed((folder / "checkpoint.pt").read_bytes())), weights_only=True)


def saved(state: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return sealed(buffer.getvalue())


def half_way(folder: Path, **options) -> dict:
    begun = fitting(folder, **options)
    begun.train_epoch()
    begun.save()
    return content_of(folder)


WRONG = {
    "damaged": lambda folder, state: (folder / "checkpoint.pt").read_bytes()[:-1],
    "without a seal": lambda folder, state: unsealed((folder / "checkpoint.pt").read_bytes()),
    "no torch file": lambda folder, state: sealed(b"PK something else"),
    "something else": lambda folder, state: saved([1, 2, 3]),
    "a part is missing": lambda folder, state: saved({**state, "run": {**state["run"], "streams": None}}),
    "another network": lambda folder, state: saved(half_way(folder / "other", model="cnn_small(width=4)")),
    "steps without epochs": lambda folder, state: saved({**state, "curves": {"train_loss": []}}),
    "curves that are none": lambda folder, state: saved({**state, "curves": {"train_loss": ["x"]}}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_checkpoint_that_cannot_be_used_begins_the_run_again(wrong, tmp_path):
    content = WRONG[wrong](tmp_path, half_way(tmp_path))
    (tmp_path / "checkpoint.pt").write_bytes(content)
    again = fitting(tmp_path)
    assert again.epoch == 0 and "trained from the start" in again.notes[0]
    assert not (tmp_path / "checkpoint.pt").exists()
    assert fit_one(again) == fit_one(fitting(None))


def test_a_whole_checkpoint_is_taken_up(tmp_path):
    half_way(tmp_path)
    again = fitting(tmp_path)
    assert again.epoch == 1 and not again.notes
    assert fit_one(again) == fit_one(fitting(None))


@pytest.mark.parametrize("together", [1, 8])
def test_checkpoints_take_a_fiftieth_of_the_time_of_all_runs_together(together, tmp_path, monkeypatch):
    runs = [fitting(tmp_path / str(i), epochs=401) for i in range(together)]
    clock, written = [0.0], []

    def save_for_a_second(run, folder, curves, observer):
        clock[0] += 1.0
        written.append(folder.name)

    module = sys.modules[Saving.__module__]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(module, "save_checkpoint", save_for_a_second)
    saving = Saving()
    for _ in range(400):
        clock[0] += 5.0
        for run in runs:
            run.note(0.0, None)
        saving.now_and_then(runs)
    assert written.count("0") > 2
    assert written == [str(i) for i in range(together)] * written.count("0")
    assert len(written) <= 0.02 * clock[0] + together  # the first round comes before there was any time to take it from
