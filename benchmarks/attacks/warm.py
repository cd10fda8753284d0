"""Commands that begin at once, forked from a process that has imported everything and computed nothing.

`python -m equipoise` and each of its workers take three to five seconds of a processor to import PyTorch and the
package: most of the time of a small study. A forked command is the real one from there on: a process with a session of
its own that calls the command line's own entry. What it would spawn as a worker is forked too, and runs the line of
Python that the spawned process would have run. Only the start itself is not attacked so: a share `FRESH` of the
commands begins as a user's does.
"""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing.util
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, NoReturn

from .command import Said, environment

FRESH = 0.05
LATER = ("optuna", "PIL.Image", "scipy.stats", "sklearn.metrics")  # what commands import only when they need it
PR_SET_PDEATHSIG = 1  # of Linux's prctl

spawn = multiprocessing.util.spawnv_passfds


class Forked:
    """A running command, with those methods of `subprocess.Popen` that an attack needs."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.pid = connection, int(connection.recv())
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not self.connection.poll(timeout):
                raise subprocess.TimeoutExpired("equipoise", timeout or 0.0)
            self.returncode = self.connection.recv()
            self.connection.close()
        return self.returncode

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Warm:
    """The process that has imported everything; it ends with this one. Processes forked from here may use it too."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="attack-warm-")
        self.address = f"{self.folder.name}/socket"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attacks.warm", self.address],
            cwd=Path(__file__).parents[1],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise RuntimeError("the process that commands are forked from did not start")

    def start(self, arguments: Sequence[str], folder: Path, log: Path) -> Forked:
        """`equipoise ARGUMENTS` in `folder`; what it prints is added to `log`."""
        connection = Client(self.address)
        connection.send(([*arguments], folder, log))
        return Forked(connection)

    def said(self, *arguments: str, folder: Path, seconds: float) -> Said:
        """Let a command end; raises `subprocess.TimeoutExpired` where it does not."""
        with tempfile.NamedTemporaryFile(prefix="attack-said-") as log:
            process = self.start(arguments, folder, Path(log.name))
            try:
                code = process.wait(seconds)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            return Said(code, Path(log.name).read_text(errors="replace"))


# -- in the process that has imported everything -----------------------------------------------------------------------


def main(address: str) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with the attack, however that ends
    _import_everything()
    arguments, folder, log = _next_command(address)
    os.chdir(folder)
    _write_to(log)
    multiprocessing.util.spawnv_passfds = _forked_worker
    sys.argv = ["equipoise", *arguments]
    importlib.import_module("equipoise.__main__").main()


def _import_everything() -> None:
    import equipoise

    ours = [module.name for module in pkgutil.walk_packages(equipoise.__path__, "equipoise.")]
    for name in (*ours, *LATER):
        with suppress(ImportError):  # of what is not installed, is for a GPU alone, or is no module but a library in C
            importlib.import_module(name)


def _next_command(address: str) -> tuple[list[str], Path, Path]:
    """What to do; returns only in processes that are to do it, forked one after the other.

    Between the two is a process that waits for the command's end: the attack is not the command's parent.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the processes between end unattended
    with Listener(address, backlog=64) as listener:
        print("ready", flush=True)
        while True:
            connection = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asked = connection.recv()
    if command := os.fork():
        _tell_end(command, connection)
    os.setsid()
    connection.send(os.getpid())
    connection.close()
    return asked


def _tell_end(command: int, connection: Connection) -> NoReturn:
    code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    with suppress(OSError):
        connection.send(code)
    os._exit(0)


def _write_to(log: Path) -> None:
    with open(os.devnull, "rb") as nothing, log.open("ab") as file:
        for source, descriptor in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(source.fileno(), descriptor)


# -- in a command ------------------------------------------------------------------------------------------------------


def _forked_worker(path: Any, args: Sequence[Any], passed: Sequence[int]) -> int:
    """In the place of `multiprocessing.util.spawnv_passfds`: the same process, without the imports."""
    *_, script, flag = args
    if flag != "--multiprocessing-fork":  # the resource tracker, which imports next to nothing
        return spawn(path, args, passed)
    sys.stdout.flush()
    sys.stderr.flush()
    if worker := os.fork():
        return worker
    code = 1
    try:
        _leave_files({0, 1, 2, *map(int, passed)})
        sys.argv = ["-c", flag]
        exec(script, {})
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        os._exit(code)


def _leave_files(kept: set[int]) -> None:
    """Close the pipes and locks that a spawned process would not have.

    Their numbers stay taken, by /dev/null: the objects that had them are still there and may close them.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in kept and descriptor != nothing:
            os.dup2(nothing, descriptor)


if __name__ == "__main__":
    main(sys.argv[1])
