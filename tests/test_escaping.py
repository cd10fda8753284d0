"""Hostile names reach no reader as anything but text: terminal, page, CSV, Markdown, LaTeX."""

import csv
import io
import os
import pty
import re
import subprocess
import sys
import threading

import pytest
from rich.console import Console
from rich.text import Text

from equipoise.core.escaping import csv_cell, latex, markdown, visible
from equipoise.core.terminal import Terminal

ESCAPE = "\x1b]0;owned\x07\x1b[2J"
HOSTILE = (
    "x[/b]",
    "[link=file:///x]y",
    "end\\",
    ESCAPE,
    "=HYPERLINK(1)",
    "a|b https://x.y www.x.y <b>",
    "\\input{x} $1$ %",
    "back\u202ewards",
    "caf\udce9",
)
STUDY = {"schema": 1, "name": "s", "question": ESCAPE + HOSTILE[0], "baseline": "plain", "metric": "accuracy"}


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_is_obeyed_stays(text):
    for made in (visible(text), csv_cell(text), markdown(text), latex(text)):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", made)
        made.encode()


@pytest.mark.parametrize("text", ["naïve", "漢字", "मराठी", "👩‍🚀", "a\u00a0b", "−0.5 ± 0.1", "line\nline"])
def test_text_of_any_language_stays(text):
    assert visible(text, lines=True) == text


@pytest.mark.parametrize("start", "=+-@\t\r")
def test_no_cell_is_a_formula(start):
    assert csv_cell(f"{start}1").startswith("'")


def test_links_and_tables_of_markdown():
    pytest.importorskip("linkify_it", reason="no package that finds bare links")
    from markdown_it import MarkdownIt

    page = MarkdownIt("gfm-like").render(f"| a |\n| --- |\n| {markdown(' '.join(HOSTILE))} |\n")
    assert "<a " not in page and "<b>" not in page and page.count("<td") == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_a_terminal_shows_text(text):
    written = io.StringIO()
    console = Terminal(file=written, width=200)
    console.print(Text(text))
    assert "\x1b" not in written.getvalue() and written.getvalue().encode()
    plain = io.StringIO()
    Console(file=plain, width=200).print(Text(text))
    assert ("\x1b" in plain.getvalue()) == ("\x1b" in text)  # without it they would get through


def write_hostile_study(folder):
    import numpy as np

    from equipoise.store import Record, Store

    store, methods = Store(folder).create(), ["plain", *HOSTILE]
    names = HOSTILE[:4]
    for method, name in enumerate(methods):
        for seed in range(2):
            record = Record(
                f"k{method}-{seed}", {"loss": name}, "finished", names, (5, 4, 3, 2), "d", 1, 1.0,
                "2026-01-01T00:00:00+00:00", {}, name,
            )  # fmt: skip
            rng = np.random.default_rng([method, seed])
            store.put(record, {"test": {"logits": rng.normal(size=(40, 4)), "labels": np.arange(40) % 4}})
    plain = [
        {"name": name, "recipe": {"loss": name}, "keys": [f"k{i}-{seed}" for seed in range(2)]}
        for i, name in enumerate(methods)
    ]
    store.write_json("study.json", {**STUDY, "seeds": [0, 1], "methods": plain})


def test_a_whole_report_of_hostile_names(tmp_path):
    """On a real terminal, and in every file."""
    write_hostile_study(tmp_path / "s")
    for command in ("status", "report"):
        code, said = on_a_terminal([sys.executable, "-m", "equipoise", command, str(tmp_path / "s")])
        assert code == 0, said
        assert b"\x1b]0;" not in said and b"\x1b[2J" not in said and b"Traceback" not in said
        assert b"x[/b]" in said
    for name in ("results.csv", "table.csv"):
        rows = list(csv.reader(io.StringIO((tmp_path / "s" / name).read_text())))
        assert len({len(row) for row in rows}) == 1
        assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "@"))]
    for path in (tmp_path / "s").glob("*.*"):
        assert "\x1b" not in path.read_text(encoding="utf-8"), path.name
    assert "\\input" not in (tmp_path / "s" / "table.tex").read_text()


def on_a_terminal(command):
    """Exit code and what a pseudo terminal would show."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        command, stdout=child, stderr=child, env={**os.environ, "TERM": "xterm", "COLUMNS": "300"}
    )
    os.close(child)
    said = bytearray()

    def read():
        try:
            while chunk := os.read(parent, 4096):
                said.extend(chunk)
        except OSError:  # how a pseudo terminal ends
            pass

    reader = threading.Thread(target=read)
    reader.start()
    code = process.wait(timeout=300)
    reader.join(timeout=10)
    os.close(parent)
    return code, bytes(said)
