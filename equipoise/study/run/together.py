"""One run on several processes, which torchrun starts: all call `run_together`, and the first keeps the records.

What torchrun starts again after a failure, on as many processes or on others, finds the last checkpoint in the store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial

import torch
from torch import distributed, nn

from ...core import EquipoiseError
from ...core.words import counted
from ...data import forget_cached
from ...norms import BatchNorm2d
from ...norms._base import Norm
from ...store import Store
from ...store.lock import at_work
from ...store.underway import note_epoch
from ...train import ALONE, Diverged, Processes, Recipe, Run, choose_convolutions, fit_one
from ..binding import bind
from ..convergence import train_for_longer
from ..study import Study
from .bf16 import check_precision
from .child import keep_freed_memory
from .hardware import best_device
from .how import How
from .job import Curves, Job, correct, failure_of, fitting_of, jobs_of, keep
from .listener import Listener, Watch
from .meeting import meet
from .runs import set_aside_damaged
from .shared import cache_of
from .workers import Event


def started_by_torchrun() -> bool:
    """Whether torchrun, or what sets the same variables, started this process beside others."""
    return {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


@contextmanager
def processes(device: str | None = None) -> Iterator[How]:
    """Within, the processes that torchrun started are a team: each on its own GPU (NCCL), or all on CPUs (gloo)."""
    where = _own_device(best_device(device), int(os.environ["LOCAL_RANK"]))
    if where.type == "cuda":
        torch.cuda.set_device(where)
    choose_convolutions()
    keep_freed_memory()
    meet("nccl" if where.type == "cuda" else "gloo")
    try:
        yield How(where, team=Processes())
    finally:
        distributed.destroy_process_group()


def _own_device(device: torch.device, local_rank: int) -> torch.device:
    if device.type == "cpu":
        return device
    if device.index is not None:
        raise EquipoiseError(
            f"{device} is one GPU, and torchrun gives each process one of its own: leave out --device, or say "
            "--device cuda"
        )
    if local_rank >= torch.cuda.device_count():
        raise EquipoiseError(
            f"torchrun started at least {local_rank + 1} processes here, where {torch.cuda.device_count()} GPUs are: "
            "lower --nproc-per-node, or add --device cpu"
        )
    return torch.device("cuda", local_rank)


def run_together(study: Study, store: Store, how: How, listener: Listener) -> None:
    """Do the runs that the store lacks, one after the other, each on all processes of `how.team`."""
    team = how.team
    study = bind(study, store, listener.say)
    jobs = jobs_of(recipe for _, recipe in study.recipes())
    check_precision([job.training for job in jobs], how.device)
    names = {recipe.key: f"{name} · seed {recipe.seed}" for name, recipe in study.recipes()}
    with at_work(store.create(), study.to_dict()) if team.leads else nullcontext():
        if team.leads:
            set_aside_damaged(store, listener, names)
        finished = team.told(lambda: [job.finished_in(store) for job in jobs])
        with listener.runs(names, len(jobs), sum(finished)) as watch:
            for job, is_finished in zip(jobs, finished, strict=True):
                if not is_finished:
                    _do(job, store, how, listener, watch)
        if team.leads:
            train_for_longer(study, store, replace(how, team=ALONE), listener)
    forget_cached(cache_of(store))  # on the disk of each machine


def _do(job: Job, store: Store, how: How, listener: Listener, watch: Watch) -> None:
    with ExitStack() as claim:
        if how.team.leads and not claim.enter_context(store.claim(job.training.key)):
            raise EquipoiseError(f"another process is training this in {store.path}: choose another folder with --out")
        for recipe in job.recipes:
            can_begin = how.team.told(partial(_can_begin, recipe, store, how))
            if can_begin and recipe.posthoc is None:
                _train(recipe, job, store, how, listener, watch)
            elif can_begin and how.team.leads:
                correct(recipe, store, replace(how, team=ALONE))
    if how.team.leads:
        watch.event(Event("done", job), store)


def _can_begin(recipe: Recipe, store: Store, how: How) -> bool:
    """Whether its record is missing and what it builds on is there; where that has failed, so has this."""
    if store.has(recipe.key):
        return False
    if recipe.parent is None or store.finished(recipe.parent.key):
        return True
    store.put(failure_of(recipe, EquipoiseError("the training it builds on failed"), 0.0, how.device))
    return False


def _train(recipe: Recipe, job: Job, store: Store, how: How, listener: Listener, watch: Watch) -> None:
    started = time.monotonic()
    fitting = fitting_of(recipe, store, how)
    fitting.notes += (note := what_each_sees(fitting.run),)
    listener.say(note)

    def tell(epoch: int, curves: Curves) -> None:
        if how.team.leads:
            note_epoch(store, recipe.key, epoch, recipe.plan.epochs)
            latest = {name: values[-1] for name, values in curves.items()}
            watch.event(Event("epoch", job, epoch=epoch, latest=latest), store)

    try:
        fit_one(fitting, on_epoch=tell)
    except Diverged as error:  # of all processes at the same step
        if how.team.leads:
            store.put(failure_of(recipe, error, time.monotonic() - started, how.device))
        return
    keep(fitting, store, time.monotonic() - started)


def what_each_sees(run: Run) -> str:
    """What a reader should know of a run on several processes: how batches are divided, and what sees a part alone."""
    if run.team.size == 1:
        return "Trained by 1 process."
    said = [f"Trained by {run.team.size} processes, which share each batch of {counted(run.batch_size, 'image')}."]
    if run.mix is not None:
        said.append(f"{run.recipe.mix} mixes images of one process.")
    shared = {_is_synchronized(norm) for norm in _norms_over_batches(run)}
    if False in shared:
        said.append(
            "Norms over batches have the statistics of one process's images; their moving averages are averaged over "
            "all processes after each epoch."
        )
    if True in shared:
        said.append("Synchronized batch norms have the statistics of all processes' images.")
    if run.objective.weighting is not None and run.objective.weighting.sees_batch:
        said.append(f"{run.recipe.weighting} compares the images of one process.")
    return " ".join(said)


def _norms_over_batches(run: Run) -> list[nn.Module]:
    """Ours know what a statistic is taken over; PyTorch's batch norms take the whole batch."""
    norms = [module for module in run.network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    return [norm for norm in norms if not isinstance(norm, Norm) or norm.block().examples > 1]


def _is_synchronized(norm: nn.Module) -> bool:
    return isinstance(norm, BatchNorm2d) and norm.synchronized
