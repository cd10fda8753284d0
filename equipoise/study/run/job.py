"""One job: train a recipe, apply the post-hoc methods that share it, write the records."""

from __future__ import annotations

import platform
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_weights
from safetensors.torch import save as save_weights

from ... import __version__
from ...analysis import evaluate
from ...core import EquipoiseError
from ...data import DataError
from ...data.task import at_hand
from ...store import Damaged, Record, Store, now
from ...store.underway import note_waiting, waiting_curves
from ...train import (
    Diverged,
    Fitting,
    Recipe,
    Run,
    Stopped,
    fit_one,
    fit_pack,
    predict,
    why_not_stacked,
)
from .child import Failed, ask
from .correction import Arrays, change_network, corrected_outputs, posthoc_of
from .hardware import (
    alike,
    choose_layouts,
    compiling_pays,
    device_name,
    layout_of,
    measured_layout,
    note_compiled,
    packing,
)
from .how import How
from .images import task_of
from .trouble import broke_the_device, ran_out_of_memory
from .watch_classes import Progress

Curves = dict[str, list[float]]
Tell = Callable[[int, Curves], None]  # epochs done, curves so far
TellMember = Callable[[int, int, Curves], None]  # which job, epochs done, curves so far
Stop = Callable[[], bool]
Turn = Callable[[], AbstractContextManager[None]]  # within which a load trains


@dataclass(frozen=True)
class Job:
    """A training and all that continues or corrects it, parents first: what one worker does in one go.

    With `until` it is so many epochs of the training alone, which then waits to be taken up.
    """

    recipes: tuple[Recipe, ...]
    until: int | None = None

    @property
    def training(self) -> Recipe:
        return self.recipes[0]

    def finished_in(self, store: Store) -> bool:
        return all(store.has(recipe.key) for recipe in self.recipes) or self.waits_in(store)

    def waits_in(self, store: Store) -> bool:
        """Whether as much of the training is done as was to be done."""
        curves = waiting_curves(store, self.training.key) if self.until is not None else {}
        return self.until is not None and len(curves.get("train_loss", [])) >= self.until


def jobs_of(recipes: Iterable[Recipe], until: Mapping[str, int] | None = None) -> list[Job]:
    """The jobs of these recipes, in their order; what needs the same trained network shares a job.

    Trainings whose keys are in `until` are done up to that epoch, unless something else needs their networks.
    """
    families: dict[str, dict[str, Recipe]] = {}
    for recipe in recipes:
        line = [recipe]
        while parent := line[0].parent:
            line.insert(0, parent)
        family = families.setdefault(line[0].key, {})
        for member in line:
            family.setdefault(member.key, member)
    return [
        Job(tuple(family.values()), (until or {}).get(key) if len(family) == 1 else None)
        for key, family in families.items()
    ]


def do(job: Job, store: Store, how: How, tell: Tell, stop: Stop, turn: Turn = nullcontext) -> bool:
    """Do what is missing of `job`; False if another process is at work on it."""
    with store.claim(job.training.key) as mine:
        if mine and not job.finished_in(store):
            for recipe in job.recipes:
                work = partial(_train, recipe, store, how, tell, stop, turn, job.until)
                if recipe.posthoc is not None:
                    work = partial(correct, recipe, store, how)
                _recorded(store, recipe, work, how.device)
    return mine


def do_together(
    jobs: Sequence[Job], store: Store, how: How, tell: TellMember, stop: Stop, turn: Turn = nullcontext
) -> list[bool]:
    """The same for several jobs whose trainings can be packed on one GPU; whether each was ours to do."""
    with ExitStack() as claims:
        mine = [claims.enter_context(store.claim(job.training.key)) for job in jobs]
        members: dict[int, Fitting] = {}
        for i, job in enumerate(jobs):
            if mine[i]:
                _recorded(store, job.training, partial(_join, members, i, job, store, how), how.device)
        if members:
            _train_together(members, store, how.device, tell, stop, turn)
    return [
        ours and do(job, store, how, partial(tell, i), stop, turn)
        for i, (job, ours) in enumerate(zip(jobs, mine, strict=True))
    ]


def _join(members: dict[int, Fitting], place: int, job: Job, store: Store, how: How) -> None:
    members[place] = fitting_of(job.training, store, how, job.until)


def _train_together(
    members: dict[int, Fitting], store: Store, device: torch.device, tell: TellMember, stop: Stop, turn: Turn
) -> None:
    places, fittings = list(members), list(members.values())
    with turn():
        started = time.monotonic()
        outcomes = fit_pack(fittings, on_epoch=lambda member, *news: tell(places[member], *news), stop=stop)
    seconds = (time.monotonic() - started) / max(1, len(members))  # what each cost of the time they shared
    for fitting, outcome in zip(members.values(), outcomes, strict=True):
        if isinstance(outcome, Diverged):
            store.put(failure_of(fitting.run.recipe, outcome, seconds, device))
        else:
            _keep_or_wait(fitting, store, seconds)


def measured_pack_size(jobs: Sequence[Job], store: Store, how: How) -> int:
    """How many runs to train side by side here, after measuring what is faster for these jobs.

    It is measured in another process; where that comes to nothing, the runs go on with what is usual.
    """
    trainings = [job.training for job in jobs if job.training.capturable]
    if how.device.type == "cpu":
        convolved = [recipe for recipe in trainings if recipe.plan.train == "all"]
        choose_layouts(convolved, store, lambda recipe: str(ask(how.device, _layout_of, recipe, store.path)))
        return 1
    if not trainings:
        return 1
    try:
        largest = max(trainings, key=lambda recipe: recipe.networks)  # so that the others fit as well
        runs = max(Counter(map(alike, trainings)).values())
        return int(ask(how.device, _pack_size_of, largest, runs, store.path, how))
    except Failed:
        return 1


def _layout_of(recipe: Recipe, path: Path) -> str:
    return measured_layout(recipe, task_of(recipe, Store(path), torch.device("cpu")))


def _pack_size_of(recipe: Recipe, runs: int, path: Path, how: How) -> int:
    task = task_of(recipe, Store(path), how.device)
    if not at_hand(task.train.images, how.device):
        return 1  # a loader's processes serve one run
    found = packing(recipe, runs, task, how.compiled)
    if how.compiled:
        note_compiled(recipe, Store(path), found.compiled)
    return found.size


def _recorded(store: Store, recipe: Recipe, work: Callable[[], None], device: torch.device) -> None:
    """Do `work` unless its record is there; where it fails for a reason of its own, the failure is the record."""
    if store.has(recipe.key):
        return
    started = time.monotonic()
    try:
        work()
    except (Stopped, OSError, Damaged, DataError):  # damaged files say nothing about the recipe either
        raise
    except Exception as error:
        # neither a full or read-only disk nor want of memory says anything about the recipe, and where the device
        # broke down somebody else's run may have done it
        if isinstance(error.__cause__, OSError) or ran_out_of_memory(error) or broke_the_device(error):
            raise
        store.put(failure_of(recipe, error, time.monotonic() - started, device))


def _train(recipe: Recipe, store: Store, how: How, tell: Tell, stop: Stop, turn: Turn, until: int | None) -> None:
    fitting = fitting_of(recipe, store, how, until)
    # a second stage is short and leaves most of a GPU to the load whose turn it is
    with turn() if recipe.parent is None else nullcontext():
        started = time.monotonic()
        if how.device.type == "cpu" or not recipe.capturable:
            fit_one(fitting, on_epoch=tell, stop=stop)
        else:  # a pack of one: its steps are captured
            (outcome,) = fit_pack([fitting], on_epoch=lambda _, *news: tell(*news), stop=stop)
            if isinstance(outcome, Diverged):
                raise outcome
    _keep_or_wait(fitting, store, time.monotonic() - started)


def _keep_or_wait(fitting: Fitting, store: Store, seconds: float) -> None:
    if fitting.complete:
        keep(fitting, store, seconds)
        return
    fitting.save()
    note_waiting(store, fitting.run.recipe.key, fitting.curves)


def fitting_of(recipe: Recipe, store: Store, how: How, until: int | None = None) -> Fitting:
    """The run of a recipe, at its start or where its checkpoint left it; it ends at epoch `until` at the latest."""
    task = task_of(recipe, store, how.device)
    weights = load_weights(how.team.told(lambda: _parents_weights(recipe, store))) if recipe.parent else None
    run = Run(recipe, task, how.device, weights, layout_of(recipe, store), team=how.team)
    if how.compiled and why_not_stacked(run) is not None and compiling_pays(recipe, store):
        run.compile()
    counts = task.class_counts.numpy()
    observer = Progress(run) if how.watch_classes else None
    folder = store.scratch(recipe.key)
    return Fitting(run, lambda logits, labels: evaluate(logits, labels, counts), folder, observer, until)


def _parents_weights(recipe: Recipe, store: Store) -> bytes:
    return store.weights(_trained(recipe, store).key)


def keep(fitting: Fitting, store: Store, seconds: float) -> None:
    """Write what a finished run came to; of a team, all predict and one writes."""
    run, recipe, task, curves = fitting.run, fitting.run.recipe, fitting.run.task, fitting.curves
    record = Record(
        key=recipe.key,
        recipe=recipe.to_dict(),
        state="finished",
        class_names=task.class_names,
        class_counts=tuple(task.class_counts.tolist()),
        data=task.fingerprint,
        parameters=sum(p.numel() for p in run.network.parameters()),
        seconds=seconds,
        ended=now(),
        versions=versions(),
        device=device_name(run.device),
        metrics={name: values[-1] for name, values in curves.items()},
        curves=curves,
        timing={**fitting.seconds, "images": float(fitting.epochs_here * run.steps_per_epoch * run.batch_size)},
        notes=fitting.notes,
    )
    outputs = {"valid": predict(run, task.valid), "test": predict(run, task.test)}
    if isinstance(fitting.observer, Progress):
        outputs["progress"] = fitting.observer.arrays()
        if sealed := fitting.observer.sealed_arrays():
            outputs["progress_test"] = sealed
    if not run.team.leads:
        return
    weights = {name: tensor.contiguous().cpu() for name, tensor in run.evaluated.state_dict().items()}
    store.put(record, outputs, save_weights(weights))


def _trained(recipe: Recipe, store: Store) -> Record:
    """The record of the training that `recipe` continues or corrects."""
    assert recipe.parent is not None
    trained = store.get(recipe.parent.key)
    if not trained.finished:
        raise EquipoiseError(f"the training it builds on failed: {trained.error}")
    return trained


def correct(recipe: Recipe, store: Store, how: How) -> None:
    """Fit a post-hoc method on the validation data and apply it."""
    started = time.monotonic()
    trained = _trained(recipe, store)
    weights = load_weights(store.weights(trained.key))
    posthoc = posthoc_of(recipe, trained, weights)
    if hasattr(posthoc, "change"):
        valid, test = _outputs_of_changed(posthoc, recipe, weights, store, how)
    else:
        valid, test = corrected_outputs(posthoc, store.valid(trained.key), store.test_sealed(trained.key))
    metrics = {}
    if len(valid["labels"]):
        found = evaluate(valid["logits"], valid["labels"], np.array(trained.class_counts))
        metrics = {f"valid_{name}": value for name, value in found.items()}
    plain = {
        **trained.__dict__,
        "key": recipe.key,
        "recipe": recipe.to_dict(),
        "seconds": time.monotonic() - started,
        "ended": now(),
        "metrics": metrics,
        "curves": {},
        "timing": {},
        "trained_by": trained.key,
    }
    store.put(Record(**plain), {"valid": valid, "test": test})


def _outputs_of_changed(
    posthoc: Any, recipe: Recipe, weights: dict[str, torch.Tensor], store: Store, how: How
) -> tuple[Arrays, Arrays]:
    """New outputs of the trained network after a correction that changes the network itself."""
    assert recipe.parent is not None
    run = fitting_of(recipe.parent, store, how).run
    run.evaluated.load_state_dict(weights)
    change_network(posthoc, run)
    return predict(run, run.task.valid), predict(run, run.task.test)


def record_death(recipe: Recipe, store: Store, death: object, device: torch.device) -> None:
    """A run whose worker died, again when it was tried once more, is a failed run. Needs the claim of its job."""
    store.put(failure_of(recipe, EquipoiseError(f"{death}. It was tried twice"), 0.0, device))


def failure_of(recipe: Recipe, error: Exception, seconds: float, device: torch.device) -> Record:
    told = str(error) if isinstance(error, Diverged | ValueError) else "".join(traceback.format_exception(error))
    return Record(
        key=recipe.key,
        recipe=recipe.to_dict(),
        state="failed",
        class_names=(),
        class_counts=(),
        data="",
        parameters=0,
        seconds=seconds,
        ended=now(),
        versions=versions(),
        device=device_name(device),
        error=told,
        failed_step=error.step if isinstance(error, Diverged) else None,
    )


def versions() -> dict[str, str]:
    return {
        "equipoise": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
