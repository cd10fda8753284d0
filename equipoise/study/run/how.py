"""How runs are done: what the user chooses and no recipe holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ...train import ALONE, Team
from .hardware import best_device, core_count


@dataclass(frozen=True)
class How:
    """Where and how the runs of a study are done. It reaches every worker as it is, and is written nowhere.

    `workers` are processes on a CPU; on a GPU one process trains packs of runs.
    """

    device: torch.device
    workers: int = 1
    compiled: bool = False  # fuse the networks first; for long studies on a GPU
    fast: bool = False  # on a GPU the fastest kernels, which round differently each time
    tensorboard: bool = False  # event files for TensorBoard
    pilot: bool = False  # longer trainings, to tell whether training was long enough, whatever they cost
    watch_classes: bool = False  # record what happens to each class while training
    team: Team = ALONE  # the processes that train each run together

    @classmethod
    def on(cls, device: str | None = None, workers: int | None = None, **options: Any) -> How:
        """On the device of this name, or the best there is, with so many workers, or the usual number."""
        where = best_device(device)
        return cls(where, workers or (core_count() if where.type == "cpu" else 1), **options)
