"""Does runs that are missing, to their end or to Ctrl-C, and tells a listener how it goes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core import EquipoiseError
from ...store import Store
from ...train import Recipe
from .bf16 import slow_words
from .engine import engine_of
from .how import How
from .images import backbone
from .job import jobs_of
from .listener import Listener
from .tensorboard import TensorBoard
from .workers import Workers


class Interrupted(Exception):
    """The user pressed Ctrl-C; all that was done is kept."""


def do_runs(recipes: Iterable[tuple[str, Recipe]], store: Store, how: How, listener: Listener) -> bool:
    """Do those of the named `recipes` that the store lacks, and tell how it goes; False if it has them all."""
    named = list(recipes)
    names = {recipe.key: f"{name} · seed {recipe.seed}" for name, recipe in named}
    jobs = jobs_of(recipe for _, recipe in named)
    set_aside_damaged(store, listener, [recipe.key for job in jobs for recipe in job.recipes])
    missing = [job for job in jobs if not job.finished_in(store)]
    if not missing:
        return False
    engine = engine_of(store, how)
    with listener.stages() as progress:
        for recipe in {(job.training.task, backbone(job.training)): job.training for job in missing}.values():
            engine.look_at_images(recipe, progress)
    pool = Workers(missing, store, how)
    if how.engine == "local" and (words := slow_words([job.training for job in missing], how.device)):
        listener.say(words, "warning")
    board = TensorBoard(store.path / "tensorboard") if how.tensorboard else None
    with stop_on_interrupt(pool, listener), listener.runs(names, len(jobs), len(jobs) - len(missing)) as watch:
        for event in pool.events():
            watch.event(event, store)
            if board and event.what == "epoch":
                name, seed = next((n, r.seed) for n, r in named if r in event.job.recipes)
                board.epoch(name, seed, event.epoch, event.latest or {})
            if event.what == "fatal":
                pool.stop()
                raise EquipoiseError(event.error or "a worker failed")
    if pool.stopping:
        raise Interrupted
    return True


def set_aside_damaged(store: Store, listener: Listener, keys: Iterable[str] | None = None) -> None:
    """Move what is damaged of these runs, or of all, out of the way and say so; it is done again."""
    for each in store.set_aside_damaged(keys):
        words = f"{each.path} is damaged ({each.problem}): its run is now in {store.path / 'damaged'} and done again."
        listener.say(words, "warning")


@contextmanager
def stop_on_interrupt(pool: Workers, listener: Listener) -> Iterator[None]:
    """The first Ctrl-C asks for a clean stop, the second one ends at once."""

    def handle(number: int, frame: Any) -> None:
        if pool.stopping:
            raise KeyboardInterrupt
        listener.say(f"\nStopping: {pool.stop_words} …")
        pool.stop()

    with on_ctrl_c(handle):
        yield


@contextmanager
def on_ctrl_c(handle: Any = signal.default_int_handler) -> Iterator[None]:
    """Within, Ctrl-C calls `handle`; by default it raises KeyboardInterrupt, which the command line otherwise does not.

    Only the main thread of a process can have it so; elsewhere it stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
