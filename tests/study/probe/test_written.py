"""What `equipoise analyze` writes and prints."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from equipoise.cli import app
from equipoise.core import EquipoiseError
from equipoise.study.probe import probe as analyze
from equipoise.study.probe.subjects import plain
from equipoise.study.probe.transfer import Other


def test_the_file_is_plain_json(analyzed):
    text = (analyzed[0].path / "analysis.json").read_text()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert plain({"a": np.array([1.0, np.nan]), "b": (np.float32(0.1), 2)}) == {"a": [1.0, None], "b": [0.1, 2]}


def test_the_opening_of_the_test_set_is_noted(store, run):
    run(store, peek=True)
    (opening,) = store.read_json("opened.json")["openings"]
    assert opening["peek"] and len(opening["keys"]) == 9


def test_the_key_table(analyzed):
    text = (analyzed[0].path / "analysis.md").read_text()
    header = next(line for line in text.splitlines() if line.startswith("| method"))
    assert [c.strip() for c in header.strip("|").split("|")] == [
        "method", "R²", "non-zero %", "CKA to plain", "most alike, %", "transfer %", "mCE",
    ]  # fmt: skip
    row = next(line for line in text.splitlines() if line.startswith("| plain"))
    assert re.search(r"0\.\d{3} ± 0\.\d{3}", row) and "100.0 ± 0.0" in row and re.search(r"weigh\w+ \d\d\.\d", row)
    assert "over 3 seeds" in text and "training images" in text


def command(*arguments):
    return CliRunner().invoke(app, ["analyze", *map(str, arguments), "--device", "cpu"])


def test_the_command_prints_a_table_and_writes_the_report(store):
    done = command(store.path, "--images", "60")
    assert done.exit_code == 0, done.output
    assert "R²" in done.output and "plain" in done.output and "report.html" in done.output
    page = (store.path / "report.html").read_text()
    for name in ("similarity", "representations", "weights", "alpha"):
        assert f'<section id="{name}"' in page
    assert '<section id="transfer"' not in page


def test_the_command_refuses_what_it_cannot_do(store, tmp_path, runs_of):
    missing = command(tmp_path / "nowhere")
    assert isinstance(missing.exception, EquipoiseError) and "not there" in str(missing.exception)
    wrong = command(store.path, "--transfer", "digitz")
    assert isinstance(wrong.exception, EquipoiseError) and "Did you mean 'digits'" in str(wrong.exception)
    assert not (store.path / "analysis").exists()
    store.remove(runs_of(store, "plain")[0].key)
    early = command(store.path)
    assert isinstance(early.exception, EquipoiseError) and "--peek" in str(early.exception)
    assert not (store.path / "analysis.json").exists()


def test_the_command_says_how_to_go_on(store, monkeypatch):
    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(analyze, "measure", stop)
    done = command(store.path)
    assert done.exit_code == 130 and "goes on from here" in done.output


def test_kept_names_of_other_tasks_differ():
    assert Other("digits", 10).part != Other("blobs", 10).part
