"""`benchmarks/reality_check.py` trains what its search chose, and writes both down."""

import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.reproduction import read_records
from equipoise.store import Store
from equipoise.study import Study, bound

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "reality_check.py"
SEARCH = """
name = "reality_check_search_small"
baseline = "plain"
metric = "balanced_accuracy"
seeds = 2
task = {name = "digits", imbalance = "long_tailed", ratio = 20, valid = 0.2}
base = {model = "cnn_small", epochs = 2}
tune = {trials = 2, seeds = 1, space = {lr = [0.1], weight_decay = {values = [2e-4, 0.3], scale = "choice"}}}
methods = {plain = {}, adjusted = {posthoc = "logit_adjust(tau=1.0)", space = {posthoc = {tau = [1.0]}}}}
"""

BESIDE = """
baseline = "plain"
metric = "accuracy"
seeds = 2
task = {name = "digits", imbalance = "long_tailed", ratio = 20, valid = 0}
base = {model = "cnn_small", epochs = 2}
methods = {plain = {}, focal = {loss = "focal"}, ldam = {loss = "ldam"}}
"""


@pytest.mark.slow
def test_what_was_chosen_is_trained_longer_on_all_of_train(tmp_path):
    (tmp_path / "search.toml").write_text(SEARCH)
    (tmp_path / "beside.toml").write_text(BESIDE)
    asked = [str(tmp_path / "search.toml"), "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    beside = ["--beside", str(tmp_path / "beside.toml"), "--seeds", "1", "--leave-out", "ldam"]
    command = [sys.executable, str(SCRIPT), *asked, *beside, "--epochs", "3", "--device", "cpu", "--workers", "1"]
    subprocess.run(command, check=True, capture_output=True, text=True)

    assert len((tmp_path / "out" / "trials.csv").read_text().splitlines()) == 1 + 2 * 2
    study = Study.from_toml(tmp_path / "out" / "reality_check_small.toml")
    assert study.metric == "accuracy" and study.tuned["study"] == "reality_check_search_small"
    for recipe in study.methods.values():
        assert (recipe.plan.epochs, recipe.task.valid, recipe.task.test) == (3, 0.0, True)
        assert recipe.plan.weight_decay == 2e-4  # with a decay of 0.3 nothing is learned
    records, others = read_records(tmp_path / "out" / "records.jsonl").values()
    keys = {recipe.key for _, recipe in bound(study, Store(tmp_path / "other").create()).recipes()}
    assert {run.key for run in records.runs} == keys and len(keys) == 4  # the file is what was trained
    assert [(run.method, run.seed) for run in others.runs] == [("plain", 0), ("focal", 0)]
