"""--until-decided, --peek and plan as a user meets them."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from equipoise.analysis.statistics.sequential import Rounds
from equipoise.cli import app
from equipoise.core import EquipoiseError
from equipoise.store import Convergence, Store
from equipoise.study import Study

STUDY = """
question = "Does it learn?"
baseline = "plain"
seeds = 2
priority = "natural"
task = {name = "blobs", n_max = 40, valid = 0.2}
base = {model = "cnn_small(width=4)", epochs = 2, batch_size = 16}
[methods.plain]
[methods.still]
lr = 1e-9
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(STUDY)
    return path


def call(*arguments):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(a) for a in arguments])
    if isinstance(result.exception, EquipoiseError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_plan_is_printed_and_nothing_written(study, tmp_path):
    text = call("plan", study, "--out", tmp_path / "out", "--spread", 2)
    assert "1 method against plain on accuracy at natural class frequencies" in text
    assert "2 seeds cannot support any claim about 2 methods; 6 can." in text
    assert "With --until-decided" in text and "by 2.00 points: as you say" in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [["--max-runs", 20], ["--minutes", 1], ["--peek"]])
def test_options_of_rounds_need_rounds(study, tmp_path, option):
    with pytest.raises(EquipoiseError, match="go with --until-decided"):
        call("run", study, "--out", tmp_path / "out", *option)
    assert not (tmp_path / "out").exists()


def test_a_study_that_has_not_ended_is_reported_with_peek_only(study, tmp_path):
    store = Store(tmp_path / "out").create()
    store.write_json("study.json", Study.from_toml(study).to_dict())
    with pytest.raises(EquipoiseError, match="4 of 4 runs are still to do.*add --peek"):
        call("report", store.path)
    assert not (store.path / "opened.json").exists() and not (store.path / "report.html").exists()
    call("report", store.path, "--peek")
    assert (store.path / "report.html").exists()


@pytest.mark.slow
def test_until_decided_from_the_first_seed_to_the_report(study, tmp_path):
    command = [sys.executable, "-m", "equipoise", "run", study, "--out", tmp_path / "out"]
    rounds = [*command, "--until-decided", "--max-runs", "28"]
    done = subprocess.run(rounds, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = Rounds.from_dict(Store(tmp_path / "out").read_json("sequential.json"))
    assert found.found[0].dropped == {"still": "surely worse than plain"} and found.ended == "settled"
    assert "still gets no more" in done.stdout and "Seeds were added in rounds" in done.stdout
    longer = Store(tmp_path / "out").document(Convergence).runs
    assert [run.method for run in longer] == ["plain"]  # 1 of 6 epochs of the study; the best method too would be 2
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2 * found.looks.seeds[0] + 1
    assert subprocess.run(command, capture_output=True).returncode == 2  # fixed seeds, in a folder of rounds
