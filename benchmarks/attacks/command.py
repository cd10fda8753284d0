"""The command line, called in this process, or for real in a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
TRACE = "Traceback (most recent call last)"
WIDE = {"COLUMNS": "250", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


@dataclass(frozen=True)
class Said:
    """What a command printed, and the code it ended with."""

    code: int
    text: str

    @property
    def whole(self) -> bool:
        """Whether it ended in one of the ways a command may: done, some runs failed, refused in words."""
        return self.code in (0, 1, 2) and TRACE not in self.text


def called(*arguments: str | Path) -> Said:
    """In this process: as fast as it can be. An exception that a user would see as a traceback goes through."""
    from equipoise.cli import main

    printed, code = io.StringIO(), 0
    command = ["equipoise", *map(str, arguments)]
    with patch.object(sys, "argv", command), redirect_stdout(printed), redirect_stderr(printed):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Said(code, printed.getvalue())


def environment() -> dict[str, str]:
    """So that processes import the package from where this script lies, one thread each."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **WIDE, "PYTHONPATH": os.pathsep.join(paths), "PYTHONFAULTHANDLER": "1"}


def line(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "equipoise", *map(str, arguments)]


def start(arguments: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """In a process of its own with a session of its own; what it prints is added to `log`."""
    with log.open("ab") as file:
        return subprocess.Popen(
            line(*arguments),
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def real(*arguments: str | Path, folder: Path, seconds: float = 300) -> Said:
    """In a process of its own, to its end."""
    done = subprocess.run(
        line(*arguments),
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=seconds,
    )
    return Said(done.returncode, done.stdout)
