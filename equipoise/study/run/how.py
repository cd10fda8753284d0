"""How runs are done: what the user chooses and no recipe holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ...core import EquipoiseError, known
from ...core.processors import core_count
from ...train import ALONE, Team
from .hardware import best_device

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class How:
    """Where and how the runs of a study are done. It reaches every worker as it is, and is written nowhere.

    `workers` are processes on a CPU; on a GPU one process trains packs of runs. With the engine "ray" they are packs
    that are handed to a cluster at a time: those that it has no place for wait there.
    """

    device: torch.device
    workers: int = 1
    compiled: bool = False  # fuse the networks first; for long studies on a GPU
    fast: bool = False  # on a GPU the fastest kernels, which round differently each time
    tensorboard: bool = False  # event files for TensorBoard
    pilot: bool = False  # longer trainings, to tell whether training was long enough, whatever they cost
    watch_classes: bool = False  # record what happens to each class while training
    team: Team = ALONE  # the processes that train each run together
    engine: str = "local"  # or "ray": the nodes of a cluster
    address: str | None = None  # of the cluster; None finds or makes one on this machine

    @classmethod
    def on(
        cls,
        device: str | None = None,
        workers: int | None = None,
        *,
        engine: str = "local",
        address: str | None = None,
        **options: Any,
    ) -> How:
        """On the device of this name, or the best there is, with so many workers, or the usual number."""
        known("engine", engine, ENGINES)
        if engine == "local":
            if address is not None:
                raise EquipoiseError("--address is that of a Ray cluster: add --engine ray")
            where = best_device(device)
            usual = core_count() if where.type == "cpu" else 1
        else:
            from .cluster.connection import connected

            cluster = connected(address)
            cluster.check_nodes()
            where = torch.device(cluster.device(device))
            usual = cluster.places(where.type)
        return cls(where, workers or usual, engine=engine, address=address, **options)
