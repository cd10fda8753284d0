"""What a node does with a load: the same as a worker of one machine, in a store of its own, and tells as it goes."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

from ....core import EquipoiseError
from ....store import Store
from ..child import Child, Message, Trouble, rest, rested
from .facts import differences, facts
from .order import Load, Order, unpack
from .parcels import Parcels
from .workplace import work_in

PAUSE = 0.2  # seconds between two messages about epochs
LAST_WORDS = ("answer", "error", "died")
software_here = lru_cache(maxsize=1)(facts)


def do_order(order: Order) -> Iterator[Message]:
    """A Ray task: yields what a `Seat` tells, and what `Parcels` notices."""
    import ray

    if differs := differences(order.software, software_here()):
        yield "error", Trouble(f"a node that came later has other software: {differs}. Install the same there")
        return
    with work_in(order.driver) as store:
        unpack(order, store, ray.get)
        if order.is_bf16:
            _check_bf16(order.load)
        child = _child(order.device)
        child.order(_do_packed, order.packed, store.path)
        yield from _relayed(child, Parcels(store, order.keys))


def pack_size(order: Order) -> int:
    """A Ray task: how many runs of this order to train side by side on the GPU of this node."""
    import ray

    from ..job import measured_pack_size

    load = order.load
    with work_in(order.driver) as store:
        unpack(order, store, ray.get)
        return measured_pack_size(load.jobs, store, load.how)


def warm_up(device: str, software: dict[str, str], *there: dict[str, str]) -> None:
    """A Ray task: have a worker at hand for the first load, unless the software of the nodes will be refused."""
    if not any(differences(software, theirs) for theirs in there):
        child = _child(device)
        wait([child.process.sentinel, child.pipe])  # until it has imported all
        rest(child)


def find_set(task: dict[str, Any]) -> None:
    """A Ray task: make sure that the set of a task is there, and is the same. A worker looks: it has PyTorch."""
    child = _child("cpu")
    try:
        child.ask(_find_set, task)
    finally:
        rest(child)


def _find_set(task: dict[str, Any]) -> None:
    from ....data import load_task

    try:
        load_task(**task, decode=False)
    except (EquipoiseError, OSError) as error:
        raise EquipoiseError(f"it does not have the images of {task['name']}: {error}") from None


def _do_packed(packed: bytes, path: Path, pipe: Connection) -> list[bool] | None:
    """In a worker: open the load and do it."""
    from ..hardware import FILE
    from ..local import do_load

    load: Load = pickle.loads(packed)
    Store(path).write_json(FILE, {"layouts": load.layouts})
    return do_load(load.jobs, path, load.how, pipe)


def _check_bf16(load: Load) -> None:
    """Before a worker is started: what is found decides with which instructions."""
    from ..bf16 import check_precision

    check_precision([job.training for job in load.jobs], load.how.device)


def _child(device: str) -> Child:
    with _no_main():
        return rested(device)


@contextmanager
def _no_main() -> Iterator[None]:
    """A child imports its parent's main module, as it must where that is a user's script; here it would be Ray's."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _relayed(child: Child, parcels: Parcels) -> Iterator[Message]:
    """What a child tells, its last word after all that it has made; of many epochs, the latest of each member."""
    while True:
        told = _so_far(child)
        last = told.pop() if told and told[-1][0] in LAST_WORDS else None
        yield from _latest(told)
        yield from parcels.new()
        if last:
            rest(child)
            yield last
            return


def _so_far(child: Child) -> list[Message]:
    """What was told in a short while, which ends with the order."""
    told, until = child.messages(), time.monotonic() + PAUSE
    while child.busy and (left := until - time.monotonic()) > 0:
        wait([child.process.sentinel, child.pipe], timeout=left)
        told += child.messages()
    return told


def _latest(told: list[Message]) -> Iterator[Message]:
    newest: dict[Any, Message] = {}
    for what, content in told:
        newest[what, content[0] if what == "epoch" else None] = (what, content)
    # not 'yield from': Ray sends values into generators, and a list takes none
    for message in newest.values():  # noqa: UP028
        yield message
