"""What runs will cost in time: by the records of runs like them, or by a few steps measured in another process."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...analysis import evaluate
from ...data import Features, Source, load_task
from ...store import Store
from ...train import Pack, Recipe, Run, predict
from ...train.embed import BATCH, backbone_of, images_to_embed
from ..run.bf16 import check_precision
from ..run.child import Failed, ask, check_guard
from ..run.hardware import device_name
from ..run.job import Job

MEASURED_SECONDS = 0.3  # of training steps, of each recipe that no record tells the time of
FIRST_STEPS = 4  # not counted: they make what is made once
START_SECONDS = 4.0  # until the worker processes are at work


@dataclass(frozen=True)
class Cost:
    """The seconds that each training still to do takes a worker, and how many workers there are; NaN is not known.

    `before` are those of what is done once before: a frozen network looks at all images.
    """

    seconds: tuple[float, ...]
    workers: int
    before: float = 0.0

    @property
    def runs(self) -> int:
        return len(self.seconds)

    @property
    def wall(self) -> float:
        """Seconds until all are done."""
        if not self.seconds:
            return 0.0
        if any(map(math.isnan, self.seconds)):
            return math.nan
        return self.before + START_SECONDS + max(sum(self.seconds) / self.workers, max(self.seconds))


class RunTimes:
    """Seconds of a run by its recipe: those of the store's records of other seeds, else measured by a few steps.

    `quick` measures no more than one recipe, and takes its time for all that no record tells of. Where runs are trained
    `elsewhere`, nothing is measured: this machine would tell nothing about others. `cache` is where the images of a
    study that is about to run are shared; without, they are read for the measurement alone. `problem` says why
    something could not be measured: its time is NaN.
    """

    def __init__(
        self,
        store: Store,
        device: torch.device,
        *,
        quick: bool = False,
        elsewhere: bool = False,
        cache: Path | None = None,
    ) -> None:
        check_guard()
        self.store, self.device, self.quick, self.elsewhere, self.cache = store, device, quick, elsewhere, cache
        self.known = recorded_seconds(store, device)
        self.looking: dict[tuple[str, str | None, str], float] = {}  # by network, its weights and task
        self.problem: str | None = None

    def seconds(self, recipe: Recipe) -> float:
        """A post-hoc method counts nothing where no record tells more."""
        kind = kind_of(recipe.to_dict())
        if kind not in self.known:
            if recipe.posthoc:
                return 0.0
            self.known[kind] = (self._alike() if self.quick else 0.0) or self._measured(recipe)
        return self.known[kind]

    def _alike(self) -> float:
        """The longest time that is known; NaN where something was tried and is not known."""
        known = [seconds for seconds in self.known.values() if not math.isnan(seconds)]
        return max(known, default=math.nan if self.problem else 0.0)

    def _measured(self, recipe: Recipe) -> float:
        if self.elsewhere:
            self.problem = "it is trained by other machines; their first runs will tell"
            return math.nan
        check_precision([recipe], self.device)
        try:
            if recipe.plan.train == "all":
                return float(ask(self.device, measured_seconds, recipe, self.device, self.cache))
            training, self.looking[_looks_at(recipe)] = ask(self.device, _both, recipe, self.device, self.cache)
            return float(training)
        except Failed as failed:
            self.problem = str(failed).strip().splitlines()[-1]
            return math.nan

    def cost(self, jobs: Iterable[Job], workers: int) -> Cost:
        """Of those jobs that the store lacks."""
        missing = [job for job in jobs if not job.finished_in(self.store)]
        seconds = tuple(sum(map(self.seconds, job.recipes)) for job in missing)
        looks = {_looks_at(recipe) for job in missing for recipe in job.recipes}
        return Cost(seconds, workers, before=sum(self.looking.get(look, 0.0) for look in looks))


def recorded_seconds(store: Store, device: torch.device) -> dict[str, float]:
    """Mean seconds of a finished run on this kind of device, for each recipe whatever its seed."""
    found: dict[str, list[float]] = {}
    for record in store.records():
        if record.finished and record.device == device_name(device):
            found.setdefault(kind_of(record.recipe), []).append(record.seconds)
    return {kind: statistics.fmean(seconds) for kind, seconds in found.items()}


def kind_of(recipe: Mapping[str, Any]) -> str:
    """The same for runs of one recipe that differ by their seed alone."""
    return json.dumps({name: value for name, value in recipe.items() if name != "seed"}, sort_keys=True)


def _looks_at(recipe: Recipe) -> tuple[str, str | None, str]:
    return (recipe.model, recipe.plan.weights, recipe.task.name)


def _both(recipe: Recipe, device: torch.device, cache: Path | None) -> tuple[float, float]:
    """Of a head: the seconds of its training, and those before it."""
    return measured_seconds(recipe, device, cache), looking_seconds(recipe, device)


def looking_seconds(recipe: Recipe, device: torch.device) -> float:
    """Seconds until a frozen network has seen those parts of the data whose features no file has, by a few images."""
    taken: list[float] = []

    def timed(source: Source) -> Source:
        images = source.train.images
        backbone = backbone_of(recipe.model, images.shape[1], recipe.plan.weights, device)
        if unseen := images_to_embed(source, backbone):
            backbone.features(images[:FIRST_STEPS])
            began, few = time.perf_counter(), images[:BATCH]
            backbone.features(few)
            taken.append(unseen * (time.perf_counter() - began) / len(few))
        return source

    load_task(**{**recipe.task.__dict__, "test": False}, seed=recipe.seed, through=timed)
    return sum(taken)


def measured_seconds(recipe: Recipe, device: torch.device, cache: Path | None = None) -> float:
    """Seconds of a training, from a few of its steps and one evaluation; no test image is looked at.

    On a GPU the run is measured alone; side by side with others it will cost less.
    """
    through = partial(_with_any_features, recipe=recipe) if recipe.plan.train == "head" else None
    choice = {**recipe.task.__dict__, "test": False}
    task = load_task(**choice, seed=recipe.seed, cache=cache, through=through).to(device)
    weights = Run(recipe.parent, task, device).network.state_dict() if recipe.parent else None
    run = Run(recipe, task, device, weights)
    step = _step_on_gpu(run) if device.type == "cuda" and run.capturable else _step(run)
    return run.plan.epochs * (run.steps_per_epoch * step + _evaluation(run))


def _with_any_features(source: Source, recipe: Recipe) -> Source:
    """Features of the right size: what they are makes no difference to the time."""
    images = source.train.images
    dim = backbone_of(recipe.model, images.shape[1], recipe.plan.weights, torch.device("cpu")).feature_dim
    splits: dict[str, Any] = {
        name: replace(split, images=Features(torch.zeros(len(split), dim), split.images))
        for name, split in source.splits.items()
    }
    return replace(source, **splits)


def _step(run: Run) -> float:
    """Median seconds of a step."""
    taken: list[float] = []
    while len(taken) < len(run.rates) and (len(taken) < FIRST_STEPS + 2 or sum(taken) < MEASURED_SECONDS):
        if len(taken) % run.steps_per_epoch == 0:
            run.begin_epoch(0)
        began = time.perf_counter()
        run.feed.advance()
        run.step()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[FIRST_STEPS:] or taken)


def _step_on_gpu(run: Run) -> float:
    """Mean seconds of a step replayed as one graph."""
    pack, count = Pack([run]), min(20, len(run.rates))
    for steps in (min(FIRST_STEPS, count), count):
        run.rewind()  # a short training has no more steps than these
        run.begin_epoch(0)
        torch.cuda.synchronize()
        began = time.perf_counter()
        pack.steps(steps)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / count


def _evaluation(run: Run) -> float:
    """Seconds of looking at the validation data once."""
    valid = run.task.valid
    if not len(valid):
        return 0.0
    predict(run, valid)
    began = time.perf_counter()
    outputs = predict(run, valid)
    logits = np.nan_to_num(outputs["logits"])  # a run that will diverge takes its time too
    evaluate(logits, outputs["labels"], run.task.class_counts.numpy())
    return time.perf_counter() - began
