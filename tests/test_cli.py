"""The commands as a user meets them: in a process of their own, with real mistakes."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise import cli

STUDY = """
question = "?"
baseline = "plain"
seeds = 2
task = {name = "blobs", imbalance = "long_tailed", ratio = 10, n_max = 60}
base = {model = "cnn_small(width=4)", epochs = 2, batch_size = 16}
[methods.plain]
[methods.focal]
loss = "focal"
"""


def equipoise(*arguments, cwd=None, **environment):
    command = [sys.executable, "-m", "equipoise", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200", **environment}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=120)


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(STUDY)
    return path


def refused(study, out, *message, **environment):
    """Exit code 2, one paragraph that says `message`, no traceback, nothing written."""
    done = equipoise("run", study, "--out", out, **environment)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and done.stderr.startswith("error:")
    for part in message:
        assert part in done.stderr
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('loss = "focal"', 'loss = "focl"', "Did you mean 'focal'"),
        ('loss = "focal"', 'loss = "focal(gama=1.0)"', "it takes gamma"),
        ('name = "blobs"', 'name = "blobz"', "Did you mean 'blobs'"),
        ("ratio = 10", "ratio = 0.5", "ratio"),
        ("ratio = 10", "ratio = 1000", "no image"),
        ("[methods.focal]\n", "", "at least 2 methods"),
        ('baseline = "plain"', 'baseline = "best"', "not among the methods"),
        ("seeds = 2", "seeds = = 2", "not valid TOML"),
        ('name = "blobs"', 'name = "cifar10"', "data_batch_1"),
    ],
)
def test_a_mistake_is_one_paragraph_and_nothing_is_written(study, tmp_path, old, new, message):
    text = STUDY.replace(old, new) if old != "[methods.focal]\n" else STUDY.partition(old)[0]
    study.write_text(text)
    refused(study, tmp_path / "out", message, EQUIPOISE_DATA=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))


def test_a_newer_store_is_left_alone(study, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "store.json").write_text('{"schema": 999}')
    done = equipoise("run", study, "--out", out)
    assert done.returncode == 2 and "newer version" in done.stderr
    assert [p.name for p in out.iterdir()] == ["store.json"]


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there(study, tmp_path, device):
    done = equipoise("run", study, "--out", tmp_path / "out", "--device", device)
    assert done.returncode == 2 and f"no device is named '{device}'" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(study, tmp_path):
    (tmp_path / "file").write_text("")
    done = equipoise("run", study, "--out", tmp_path / "file")
    assert done.returncode == 2 and "a file is in the way" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("small_disk", "message", "has_room"),
    [("size=200k", "the disk is full", True), ("size=4m,ro", "read-only", False)],
    indirect=["small_disk"],
)
def test_a_full_or_read_only_disk(study, small_disk, message, has_room):
    study.write_text(STUDY.replace("seeds = 2", "seeds = 8"))
    done = equipoise("run", study, "--out", small_disk / "out", "--workers", 1)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and message in done.stderr
    if has_room:
        finished = list(small_disk.glob("out/runs/*/record.json"))
        assert finished, "the disk was too small for a single run: the test shows nothing"
        assert "Finished runs are kept" in done.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "small.toml").write_text(STUDY)
    done = equipoise("run", "small.toml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def test_run_ends_with_a_table_a_verdict_and_the_report(finished):
    folder, text = finished
    assert "plain" in text and "focal" in text and "report.html" in text
    for name in ("report.html", "report.md", "results.csv"):
        assert (folder / "runs" / "small" / name).stat().st_size > 100


def test_run_again_does_nothing_new(finished):
    folder, _ = finished
    before = {p: p.stat().st_mtime_ns for p in folder.glob("runs/small/runs/*/*")}
    done = equipoise("run", "small.toml", cwd=folder)
    assert done.returncode == 0 and "already" in done.stdout
    assert before == {p: p.stat().st_mtime_ns for p in folder.glob("runs/small/runs/*/*")}


def test_status_and_report(finished):
    folder, _ = finished
    done = equipoise("status", "runs/small", cwd=folder)
    assert done.returncode == 0 and re.search(r"all\s+4\s+0\s+0\s+0", done.stdout)
    page = (folder / "runs" / "small" / "report.html").read_bytes()
    done = equipoise("report", "runs/small", cwd=folder)
    assert done.returncode == 0 and (folder / "runs" / "small" / "report.html").read_bytes() == page


def test_a_run_that_diverges_is_a_record_and_the_study_goes_on(study, tmp_path):
    study.write_text(STUDY.replace('loss = "focal"', "lr = 1e30"))
    done = equipoise("run", study, "--out", tmp_path / "out")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not a finite number at step" in done.stdout
    assert "failed" in equipoise("status", tmp_path / "out").stdout
    assert (tmp_path / "out" / "report.html").exists()


def test_train_one_recipe(tmp_path):
    (tmp_path / "one.toml").write_text(
        'model = "cnn_small(width=4)"\nloss = "focal"\nepochs = 2\n[task]\nname = "blobs"\nn_max = 60\n'
    )
    done = equipoise("train", "one.toml", "--seed", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.glob("runs/one/runs/*/weights.safetensors"))


@pytest.mark.parametrize(
    "command",
    [
        ["methods"],
        ["methods", "loss"],
        ["show", "ldam"],
        ["tasks"],
        ["presets"],
        ["norms", "cnn_small"],
        ["version"],
        ["--help"],
    ],
)
def test_commands_that_explain(command):
    done = equipoise(*command)
    assert done.returncode == 0 and done.stdout.strip()


@pytest.mark.parametrize(
    ("statement", "slow"),
    [
        ("from equipoise.cli import app", "torch"),  # all that --help needs
        ("from equipoise.train import Recipe; Recipe.make({'model': 'resnet32'}, {'name': 'digits'})", "torch._dynamo"),
    ],
)
def test_what_takes_seconds_to_import_is_not_imported_to_answer(statement, slow):
    look = f"{statement}; import sys; sys.exit({slow!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], timeout=120).returncode == 0


def test_unknown_method():
    done = equipoise("show", "ldamm")
    assert done.returncode == 2 and "Did you mean 'ldam'" in done.stderr
    assert equipoise("report", "nowhere").returncode == 2
    assert equipoise("status", "nowhere").returncode == 2


@pytest.fixture
def in_process(monkeypatch, capsys):
    """The command line without the time that a process takes to begin; its exit code and its errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["equipoise", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, capsys.readouterr().err

    return call


@pytest.mark.parametrize("command", ["run", "plan", "tune", "train"])
def test_what_is_no_study_is_a_sentence(in_process, tmp_path, command):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\0")
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "escape.toml").write_text('"\\u001b[31m" = 1\ntask = 3')
    for name in ("none.toml", "binary.toml", "escape.toml", ".", "x" * 300, "empty.toml/x"):
        code, told = in_process(command, tmp_path / name)
        assert code == 2 and told.startswith("error:") and "\x1b" not in told


@pytest.mark.parametrize("command", ["report", "status", "analyze"])
def test_what_is_no_folder_of_results_is_a_sentence(in_process, study, tmp_path, command):
    assert "is a file; give the folder that" in in_process(command, study)[1]
    assert "is not there; give the folder that" in in_process(command, tmp_path / "nowhere")[1]
    assert in_process(command, tmp_path)[0] == 2
    assert in_process(command, tmp_path / ("x" * 300))[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "x", "--workers", "0"],
        ["run", "x", "--workers", "many"],
        ["run", "x", "--unknown"],
        ["unknown"],
        ["report"],
        ["show", "x[/b]"],
        ["methods", "x[/b]"],
        ["norms", "nothing/at_all"],
        ["norms", "cnn_small(width=-1)"],
        ["norms", "cnn_small(width=1000000000)"],
        ["norms", "resnet32", "--size", "1000000"],
    ],
)
def test_arguments_that_make_no_sense(in_process, arguments):
    code, told = in_process(*arguments)
    assert code == 2 and told


def test_an_error_of_the_machine_is_a_sentence_and_one_of_ours_is_not(in_process, monkeypatch, tmp_path):
    def fails_with(error):
        def app():
            raise error

        monkeypatch.setattr(cli, "app", app)

    fails_with(OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "file")))
    assert in_process() == (
        2,
        f"error: {tmp_path / 'file'}: the disk is full; make room and give the same command again\n",
    )
    fails_with(MemoryError())
    assert "memory is not enough" in in_process()[1]
    for bug in (
        OSError("no file, no number"),
        FileNotFoundError(errno.ENOENT, "lost", cli.__file__),
        RuntimeError("bug"),
    ):
        fails_with(bug)
        with pytest.raises(type(bug)):
            cli.main()


def test_names_are_shown_as_they_are_written(tmp_path):
    names = "[methods.focal]"
    assert names in STUDY
    (tmp_path / "odd.toml").write_text(
        STUDY.replace(names, '[methods."x[/b] [red]y"]').replace("seeds = 2", "seeds = 1")
    )
    done = equipoise("run", "odd.toml", "--workers", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "finished x[/b] [red]y · seed 0" in done.stdout
