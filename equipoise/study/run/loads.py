"""What a worker is given at a time: which trainings go together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch

from .hardware import alike, even_packs
from .job import Job


def loads_of(jobs: Iterable[Job], device: torch.device, most: int) -> list[list[Job]]:
    """What a worker is given at a time: on a CPU one job, on a GPU up to `most` that train side by side.

    Only what is alike goes together, the longest with each other: when the shorter ones of a pack have ended, the
    others go on without them. What cannot be captured goes alone. Packs are even: a last small one would leave the GPU
    idle.
    """
    if device.type == "cpu":
        return [[job] for job in jobs]
    groups: dict[Any, list[Job]] = defaultdict(list)
    for number, job in enumerate(jobs):
        groups[alike(job.training) if job.training.capturable else number].append(job)
    return [load for group in groups.values() for load in _evenly(sorted(group, key=_length, reverse=True), most)]


def _length(job: Job) -> int:
    """Epochs of its training."""
    return job.training.plan.epochs if job.until is None else job.until


def _evenly(jobs: list[Job], most: int) -> Iterator[list[Job]]:
    rest = iter(jobs)
    for size in even_packs(len(jobs), most):
        yield list(islice(rest, size))


def epochs_of(load: Sequence[Job]) -> int:
    """How long a load is: the epochs of its trainings, which go side by side."""
    return max(sum(recipe.plan.epochs for recipe in job.recipes if recipe.posthoc is None) for job in load)
