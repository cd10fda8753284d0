"""A process of its own for whatever computes: methods are anyone's code, and what they do to a process must not be done
to the study's.

A child is told what to do through a pipe and tells through it how it goes. It ignores Ctrl-C (the parent decides what
that means) and ends when its parent does. Importing PyTorch takes seconds, so a child that has measured something
rests until workers are wanted; and what watches over a child on a node of a cluster does without, so this file does not
import it.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing import current_process, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ...core import EquipoiseError
from .trouble import broke_the_device, end_of, hint_for, ran_out_of_memory

if TYPE_CHECKING:
    import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
NAME = "equipoise worker"
NO_GUARD = 91  # exit code of a child that was about to begin the study again
PASSED_ON = ("ONEDNN_MAX_CPU_ISA",)  # variables that a process reads at its start, and that may change afterwards

Message = tuple[str, Any]


@dataclass(frozen=True)
class Death:
    """The end of a process in the middle of its work; `ready` if it had come so far as to begin.

    `told` is its last word, where its parent ended it for that.
    """

    exitcode: int
    ready: bool
    told: str | None = None

    @property
    def by_kill(self) -> bool:
        """SIGKILL: most often the system's answer to want of memory."""
        return self.exitcode == -signal.SIGKILL

    def __str__(self) -> str:
        if self.told:
            return f"its worker process could not go on: {self.told}"
        return f"its worker process {end_of(self.exitcode)}; {hint_for(self.exitcode)}"


@dataclass(frozen=True)
class Trouble:
    """An error inside a child: for want of `memory`, or one after which the child `is_broken`."""

    text: str
    memory: bool = False
    is_broken: bool = False


class Failed(RuntimeError):
    """What was asked of a child came to nothing; the text says why."""


class Child:
    """The parent's end. One order at a time: `order`, then `messages` until the last is "answer", "error" or "died"."""

    numbers = count(1)

    def __init__(self, device: torch.device | str) -> None:
        check_guard()
        self.device, self.environment = str(device), _passed_on()
        self.busy = self.ready = self.stopped = self.was_used = False
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        # a daemon may have no processes of its own, which a GPU's worker needs to read images ahead
        daemon = self.device == "cpu"
        name = f"{NAME} {next(self.numbers)}"
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs,), name=name, daemon=daemon)
        with _deaf_to_ctrl_c():
            self.process.start()
        theirs.close()
        _living.add(self)

    @property
    def fit(self) -> bool:
        """Whether it can take an order: it lives, is not to end, and started with the environment of now."""
        free = not self.busy and not self.stopped
        return free and self.process.is_alive() and self.environment == _passed_on()

    def order(self, work: Callable[..., Any], *args: Any) -> None:
        """Let it call `work(*args, pipe)`; what it sends through the pipe, and then the answer, are its messages."""
        self.busy = self.was_used = True
        self.send((work, args))

    def stop(self) -> None:
        """Ask it to end; an order under way can see that something waits in the pipe."""
        self.stopped = True
        self.send(None)

    def send(self, message: Any) -> None:
        with suppress(OSError):  # it died; `messages` will tell
            self.pipe.send(message)

    def messages(self) -> list[Message]:
        """What it has told since the last time; its death in the middle of an order is told too."""
        told: list[Message] = []
        alive = self.process.is_alive()  # asked first: what it sent before it died is still in the pipe
        with suppress(EOFError, OSError):
            while self.busy and self.pipe.poll():
                kind, content = self.pipe.recv()
                if kind == "ready":
                    self.ready = True
                    continue
                self.busy = kind not in ("answer", "error")
                told.append((kind, content))
        if self.busy and not alive:
            self.busy = False
            told.append(("died", Death(self.process.exitcode or 0, self.ready)))
        return told

    def ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """What `function(*args)` gives there. Raises `Failed` where it gives nothing."""
        self.order(_call, function, args)
        while True:
            wait([self.pipe, self.process.sentinel])
            for kind, content in self.messages():
                if kind == "answer":
                    return content
                check_start(content)
                if isinstance(content, Death):
                    raise Failed(str(content))
                if content.memory or content.is_broken:
                    self.close()
                raise Failed(content.text)

    def close(self) -> None:
        """It ends by itself where it has done what it had to do, and is ended where it has not, or never had any."""
        self.pipe.close()
        if self.was_used and not self.busy:
            self.process.join(timeout=5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def ask(device: torch.device, function: Callable[..., Any], *args: Any) -> Any:
    """What `function(*args)` gives in a child. Raises `Failed` where it gives nothing."""
    child = rested(device)
    try:
        return child.ask(function, *args)
    finally:
        rest(child)


_living: WeakSet[Child] = WeakSet()
_resting: list[Child] = []
_staying = False


def rested(device: torch.device | str) -> Child:
    """The child that rests, if it is fit, else a new one."""
    while _resting:
        child = _resting.pop()
        if child.fit and child.device == str(device):
            return child
        child.close()
    return Child(device)


def expect(device: str | None) -> None:
    """Start the worker that will be wanted first: it imports PyTorch while this process still does. Where `device` is
    left open and the guess is wrong, it is of no use."""
    if not _resting:
        _resting.append(Child(device or ("cuda" if os.path.exists("/dev/nvidia0") else "cpu")))


def rest(child: Child) -> None:
    """Keep a child for the next call that needs one; one is enough, or two within `workers_stay`."""
    if child.fit and len(_resting) < (2 if _staying else 1):
        _resting.append(child)
    else:
        child.close()


@contextmanager
def workers_stay() -> Iterator[None]:
    """Within, two workers wait for the runs that follow; afterwards they end, and let go of images they have mapped."""
    global _staying
    _staying = True
    try:
        yield
    finally:
        _staying = False
        while _resting:
            _resting.pop().close()


def leave(child: Child) -> None:
    """A worker has no more to do: it waits within `workers_stay`, else it ends. On a GPU it would keep the memory."""
    if _staying and child.device == "cpu":
        rest(child)
    else:
        child.close()


@atexit.register
def _close_all() -> None:
    for child in list(_living):
        child.close()


def _passed_on() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in PASSED_ON}


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """A process started within begins with SIGINT blocked, so that Ctrl-C does not meet it while it imports."""
    resource_tracker.ensure_running()  # which, where it has to start, would take the block away
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- in the child ------------------------------------------------------------------------------------------------------

_serving = False


def check_guard() -> None:
    """End a process that comes here while it imports its parent's script: the script would begin the study again."""
    if current_process().name.startswith(NAME) and not _serving:
        os._exit(NO_GUARD)


def check_start(content: Any) -> None:
    """Raise an error that says what to do where a child ended because of its parent's script."""
    if isinstance(content, Death) and not content.ready and content.exitcode == NO_GUARD:
        raise EquipoiseError(
            "each worker process imports your script, and the script then starts the study again: put what it runs "
            'under\n    if __name__ == "__main__":'
        )


def _serve(pipe: Connection) -> None:
    """A child's life: receive an order, do it, answer; end when the parent says so or is gone."""
    global _serving
    _serving = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    threading.Thread(target=_die_with_parent, daemon=True).start()
    import torch

    from ...train import choose_convolutions
    from . import local  # noqa: F401  # all that orders need is imported before the first one comes

    torch.set_num_threads(1)
    keep_freed_memory()
    choose_convolutions()
    with suppress(EOFError, OSError):
        pipe.send(("ready", None))
        while (order := pipe.recv()) is not None:
            work, args = order
            pipe.send(_answer(work, args, pipe))


def _answer(work: Callable[..., Any], args: tuple[Any, ...], pipe: Connection) -> Message:
    try:
        return "answer", work(*args, pipe)
    except Exception as error:
        return "error", Trouble(str(error) or repr(error), ran_out_of_memory(error), broke_the_device(error))


def _call(function: Callable[..., Any], args: tuple[Any, ...], pipe: Connection) -> Any:
    return function(*args)


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def keep_freed_memory() -> None:
    """Ask the C library not to give large blocks back: each step wants them again, and fresh pages cost time."""
    with suppress(OSError, AttributeError):  # another system, another library
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 2**30)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
