"""The files of a report, and the terminal."""

import io
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from equipoise.analysis import Verdict
from equipoise.core import EquipoiseError
from equipoise.front import Results
from equipoise.report import (
    collect,
    print_grid,
    print_verdict,
    table_by_ratio,
    terminal_table,
    write_by_ratio,
    write_report,
)
from equipoise.store import Store

FILES = ("report.html", "report.md", "results.csv", "table.csv", "table.tex", "verdict.json")


def shown(results, width=120):
    text = io.StringIO()
    print_verdict(results, Console(file=text, width=width))
    return text.getvalue()


def test_the_terminal_says_what_went_wrong_with_failed_runs(results):
    assert "focal, seed 2 failed: FloatingPointError: the loss is <nan> at step 41\n" in shown(results)
    (method,) = (method for method in results.methods if method.name == "focal")
    failed = tuple(replace(run, state="failed", problem="it broke") for run in method.runs)
    said = shown(replace(results, methods=(replace(method, runs=failed),)))
    assert said.count(" failed: it broke\n") == 3 and "3 more runs failed; the report says why." in said


def test_results_in_python_say_it_too(store, demo):
    store.put(demo.record_of(*demo.MISSING), {"test": demo.simulated(*demo.MISSING)})
    results = Results(store)
    assert "\nfocal, seed 2 failed: FloatingPointError: the loss is <nan> at step 41" in repr(results)
    assert "the loss is &lt;nan&gt; at step 41" in results._repr_html_()


def test_writes_its_files(store):
    assert write_report(store) == store.path / "report.html"
    assert all((store.path / name).stat().st_size > 500 for name in FILES)


def test_the_same_store_gives_the_same_bytes(store, tmp_path):
    """Also from another folder, and from another process whose sets are in another order."""
    write_report(store)
    copy = tmp_path / "copy"
    shutil.copytree(store.path, copy)
    for name in FILES:
        (copy / name).unlink()
    program = (
        "import sys; from equipoise.store import Store; from equipoise.report import write_report;"
        "write_report(Store(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", program, str(copy)], check=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    for name in FILES:
        assert (copy / name).read_bytes() == (store.path / name).read_bytes(), name


def test_verdict_json_is_the_verdict(store):
    write_report(store)
    plain = json.loads((store.path / "verdict.json").read_text(), parse_constant=pytest.fail)
    results = collect(store)
    assert (plain.pop("study"), plain.pop("question")) == (results.name, results.question)
    assert plain.pop("sentences") == results.verdict.sentences()
    back, there = Verdict.from_dict(plain), results.verdict
    assert [m.name for m in back.methods] == [m.name for m in there.methods]
    assert [m.mean for m in back.methods] == [m.mean for m in there.methods]
    assert math.isnan(next(m for m in back.methods if m.name == "plain").p_holm)


def test_a_study_without_runs(tmp_path, demo):
    store = Store(tmp_path / "empty").create()
    demo.write_study(store)
    assert write_report(store).exists()
    assert "Nothing can be compared" in shown(collect(store))


def test_terminal_shows_question_table_and_verdict(store):
    text = shown(collect(store))
    for part in ("what beats plain cross-entropy?", "balanced_softmax", "± ", "not separable", "• "):
        assert part in text
    assert terminal_table(collect(store)).row_count == 4


def test_terminal_takes_names_literally(store):
    study = store.read_json("study.json")
    study["methods"][1]["name"], study["question"] = "[red]x[/red]", "[bold]why[/nonsense]"
    store.write_json("study.json", study)
    text = shown(collect(store), width=200)
    assert "[red]x[/red]" in text
    table = io.StringIO()
    Console(file=table, width=200).print(terminal_table(collect(store)))
    assert "[red]x[/red]" in table.getvalue()
    assert "[bold]why[/nonsense]" in text


def test_one_table_of_several_studies(results, tmp_path):
    folder = tmp_path / "new" / "folder"
    write_by_ratio([results], folder)
    assert sorted(p.name for p in folder.iterdir()) == ["by_ratio.csv", "by_ratio.md", "by_ratio.tex"]
    text = io.StringIO()
    print_grid(table_by_ratio([results]), Console(file=text, width=120))
    assert "balanced_softmax" in text.getvalue() and "standard error" in text.getvalue()


def test_a_folder_that_cannot_be_made_is_said_so(results, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EquipoiseError, match="a file is in the way"):
        write_by_ratio([results], tmp_path / "file")
