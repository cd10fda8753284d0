"""`RayEngine`: a study's loads as tasks of a Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from statistics import median
from typing import Any

import torch

from ....core.progress import Progress
from ....store import Store
from ....train import Recipe
from ..hardware import layouts
from ..how import How
from ..images import backbone, look_at_images
from ..job import Job, measured_pack_size
from .connection import connected
from .order import Load, Order, order_of
from .seat import RaySeat
from .sets import send_set
from .task import do_order, pack_size

STRAGGLING = 1.5  # times the usual seconds per epoch: then another node tries too
FEWEST = 3  # loads done, for that to be known
LOOK_SECONDS = 1.0  # between two looks for stragglers
CPU = torch.device("cpu")


class RayEngine:
    """Its seats are tasks that the driver waits for. All that they make comes back into the driver's one store."""

    stop_words = "runs under way go on later, from the checkpoints that have reached the store"

    def __init__(self, store: Store, how: How) -> None:
        self.store, self.how, self.cluster = store, how, connected(how.address)
        self._seats: list[RaySeat] = []
        self._paces: list[float] = []  # seconds per epoch of each load done
        self._next_look = 0.0

    def look_at_images(self, recipe: Recipe, progress: Progress) -> None:
        """Where nodes have GPUs, these are faster than the driver at making features that stand for images."""
        if self._features_here and backbone(recipe):
            look_at_images(recipe, self.store, CPU, progress)
        send_set(recipe, self.store, self.cluster, features=self._features_here)

    @property
    def _features_here(self) -> bool:
        return self.how.device.type == "cpu"

    def check(self, jobs: Sequence[Job]) -> None:
        """Nodes may differ in what they can compute: each looks for itself."""

    def pack_size(self, jobs: Sequence[Job]) -> int:
        """Layouts are measured here, once for all nodes; packs where the GPUs are."""
        if self.how.device.type == "cpu":
            return measured_pack_size(jobs, self.store, self.how)
        return int(
            self.cluster.ray.get(self.cluster.task(pack_size, self.how.device.type).remote(self._order(list(jobs))))
        )

    def seats(self, loads: int) -> list[RaySeat]:
        count = min(self.how.workers, loads)
        self._seats = [RaySeat(number, self.store, self.cluster.ray, self._submit) for number in range(count)]
        return self._seats

    def ready(self, seats: Sequence[RaySeat], seconds: float) -> list[RaySeat]:
        self._note_paces()
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_SECONDS
            self._double_stragglers(seats)
        at_once = [seat for seat in seats if seat.stopping or not seat.attempts]
        streams = {id(attempt.stream): seat for seat in seats for attempt in seat.attempts}
        waited_for = [attempt.stream for seat in seats for attempt in seat.attempts]
        ready = self.cluster.ray.wait(waited_for, timeout=0 if at_once else seconds)[0] if waited_for else []
        return list({id(seat): seat for seat in [*at_once, *(streams[id(stream)] for stream in ready)]}.values())

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _submit(self, jobs: list[Job]) -> Any:
        return self._do_order.remote(self._order(jobs))

    @cached_property
    def _do_order(self) -> Any:
        """Made once: Ray sends each remote function that is made to all nodes."""
        return self.cluster.task(do_order, self.how.device.type)

    def _order(self, jobs: list[Job]) -> Order:
        recipes = {(job.training.task, backbone(job.training)): job.training for job in jobs}
        sent = [send_set(recipe, self.store, self.cluster, features=self._features_here) for recipe in recipes.values()]
        how = replace(self.how, engine="local", address=None)  # as a node sees it
        load = Load(jobs, how, layouts(self.store))
        return order_of(load, self.store, self.cluster.driver, self.cluster.software, tuple(one for one in sent if one))

    # -- stragglers --------------------------------------------------------------------------------------------------

    def _note_paces(self) -> None:
        for seat in self._seats:
            if seat.pace is not None:
                self._paces.append(seat.pace)
                seat.pace = None

    def _double_stragglers(self, busy: Sequence[RaySeat]) -> None:
        """Near the end, where seats are idle because nothing waits, the slowest load is tried elsewhere too."""
        if len(busy) == len(self._seats) or len(self._paces) < FEWEST:
            return
        usual, now = median(self._paces), time.monotonic()
        slow = [seat for seat in busy if len(seat.attempts) == 1 and seat.pace_if_done(now) > STRAGGLING * usual]
        if slow and self.cluster.is_idle(self.how.device.type):
            max(slow, key=lambda seat: seat.pace_if_done(now)).double()
