"""The board: what may stand on it, what is refused and why, and that nothing from outside is obeyed or told."""

import csv
import json
import shutil
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import equipoise
from equipoise.cli import app
from equipoise.front import BoardResults
from equipoise.report import make_board, render_board, write_board
from equipoise.store import Store


def with_records(results, name, change):
    """The study with `change` made to every record of a method."""
    methods = [
        m if m.name != name else replace(m, runs=tuple(replace(r, record=change(r)) for r in m.runs))
        for m in results.methods
    ]
    return replace(results, methods=tuple(methods))


def test_a_row_has_what_makes_it_worth_believing(eight):
    board = make_board([eight])
    assert [row.method for row in board.rows] == ["balanced_softmax", "focal", "ldam", "plain"]
    row, focal = board.rows[:2]
    assert focal.marks == ("1 run failed",) and len(focal.seeds) == 6 and row.marks == ()
    assert (row.data, row.network, row.version) == ("digits, long-tailed 20", "cnn_small", "0.1.0")
    assert row.seeds == tuple(range(8)) and len(row.keys) == 8 and row.parameters == 23_562
    assert row.estimates["balanced_accuracy"] == eight.methods[0].estimates["balanced_accuracy"]
    assert len({row.fingerprint for row in board.rows if len(row.seeds) == 8}) == 1  # the same images, seed by seed
    assert "loss = balanced_softmax" in row.changes


def test_the_fingerprint_tells_other_images(eight):
    other = with_records(eight, "ldam", lambda run: replace(run.record, data=f"x{run.seed}"))
    prints = {row.method: row.fingerprint for row in make_board([other]).rows}
    assert prints["ldam"] != prints["plain"] == make_board([eight]).rows[-1].fingerprint


def test_what_is_refused(eight, results):
    assert make_board([eight]).refused == ()
    few = make_board([results])
    assert str(few.refused[0]) == "focal of digits_demo: 4 finished seeds, and a row needs 6"
    blank = make_board([with_records(eight, "ldam", lambda run: replace(run.record, data="" if run.seed < 2 else "x"))])
    assert [r.reason for r in blank.refused if r.method == "ldam"] == [
        "no fingerprint says which images were drawn (seed 0, 1)"
    ]
    unknown = make_board([with_records(eight, "ldam", lambda run: replace(run.record, versions={}))])
    assert [r.reason for r in unknown.refused if r.method == "ldam"] == ["no version of equipoise is recorded"]
    twice = make_board([eight, eight])
    assert twice.rows == make_board([eight]).rows
    assert "the same runs are on the board as ldam of digits_demo" in {r.reason for r in twice.refused}


def test_what_is_written_tells_no_places_and_is_escaped(eight, demo, tmp_path):
    task = "folder(path='/home/me/<b>birds', size=8, groups='/home/me/groups.csv')"
    board = make_board([demo.elsewhere(eight, task)])
    page = write_board(board, tmp_path).read_text()
    assert "&lt;b&gt;birds" in page and "<b>birds" not in page
    plain = json.loads((tmp_path / "board.json").read_text())
    assert plain["rows"][0]["recipe"]["task"]["name"] == "folder(path='<b>birds', size=8, groups='groups.csv')"
    assert "/home/me" not in page + json.dumps(plain)
    with open(tmp_path / "board.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["mean"]) == board.rows[0].estimates[rows[0]["metric"]].mean
    assert rows[0]["fingerprint"] == board.rows[0].fingerprint


def test_an_empty_board_is_a_page_too():
    assert "0 methods on 0 data sets" in render_board(make_board([]))


def test_the_command_and_python(_made, tmp_path):
    """A study that has not ended is refused whole; the other one, cut to a single seed, row by row."""
    runs = tmp_path / "runs"
    Store(shutil.copytree(_made.path, runs / "unended"))
    store = Store(shutil.copytree(_made.path, runs / "short"))
    study = store.read_json("study.json")
    study |= {"name": "short", "seeds": [0], "methods": study["methods"][:2]}
    for method in study["methods"]:
        method["keys"] = method["keys"][:1]
    store.write_json("study.json", study)
    run = CliRunner().invoke(app, ["board", str(runs), "--out", str(tmp_path / "out")], env={"COLUMNS": "150"})
    assert run.exit_code == 0 and "3 refused" in run.output
    found = equipoise.board(runs)
    assert found.refused[0].startswith("unended: ") and "has not ended" in found.refused[0]
    assert found.refused[2] == "plain of short: 1 finished seed, and a row needs 6"
    assert found.rows == [] and "<table>" in found._repr_html_()
    assert not (runs / "unended" / "opened.json").exists()


def test_rows_from_python(eight):
    rows = BoardResults(make_board([eight])).rows
    assert {row["method"] for row in rows} == {"balanced_softmax", "focal", "ldam", "plain"}
    accuracy = next(row for row in rows if (row["method"], row["metric"]) == ("plain", "accuracy"))
    assert accuracy["mean"] == pytest.approx(sum(eight.reference.scores("accuracy")) / 8)
