"""What a worker is given at a time: which trainings go together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch

from .hardware import even_packs
from .job import Job


def loads_of(jobs: Iterable[Job], device: torch.device, most: int) -> list[list[Job]]:
    """What a worker is given at a time: on a CPU one job, on a GPU up to `most` that train side by side.

    Only trainings of the same data and batch size go together, the longest with each other: when the shorter ones of a
    pack have ended, the others go on without them. Procedures have longer steps, for which others would wait, and go
    with each other. What cannot be captured goes alone. Packs are even: a last small one would leave the GPU idle.
    """
    if device.type == "cpu":
        return [[job] for job in jobs]
    alike: dict[Any, list[Job]] = defaultdict(list)
    for number, job in enumerate(jobs):
        recipe = job.training
        like = recipe.task, recipe.plan.batch_size, recipe.plain_steps
        alike[like if recipe.capturable else number].append(job)
    return [load for group in alike.values() for load in _evenly(sorted(group, key=_length, reverse=True), most)]


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
