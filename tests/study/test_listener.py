"""What a user sees while work goes on: bars on a terminal and in a notebook."""

import io
import sys
from types import SimpleNamespace

import pytest

from equipoise.core.terminal import Terminal
from equipoise.study import OnTerminal
from equipoise.study.run.listener import Listener
from equipoise.study.run.notebook import InNotebook


def work(listener):
    with listener.stages() as progress:
        progress("reading images", 3, 12)
        progress("reading images", 12, 12)
        progress("comparing images", 5, 7)


def test_each_stage_has_a_bar_on_a_terminal():
    screen = io.StringIO()
    work(OnTerminal(Terminal(file=screen, force_terminal=True, width=100)))
    shown = screen.getvalue()
    assert "reading images" in shown and "12/12" in shown and "comparing images" in shown and "5/7" in shown


def test_nothing_is_drawn_into_a_file():
    log = io.StringIO()
    work(OnTerminal(Terminal(file=log)))
    work(Listener())
    assert log.getvalue() == ""


def test_ctrl_c_ends_the_bar():
    screen = io.StringIO()
    with pytest.raises(KeyboardInterrupt), OnTerminal(Terminal(file=screen, force_terminal=True)).stages() as progress:
        progress("reading images", 3, 12)
        raise KeyboardInterrupt
    assert screen.getvalue().rindex("\x1b[?25h") > screen.getvalue().rindex("\x1b[?25l"), "the cursor is back"


def test_each_stage_is_told_in_a_notebook(monkeypatch):
    told = []
    place = SimpleNamespace(update=told.append)
    display = SimpleNamespace(HTML=str, display=lambda shown, display_id: place)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    work(InNotebook())
    assert told[1] == '<progress value="12" max="12"></progress> 12/12 · reading images' and told[-1] == ""
