"""One job: train a recipe, apply the post-hoc methods that share it, write the records."""

from __future__ import annotations

import platform
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import torch
from safetensors.torch import load as load_weights
from safetensors.torch import save as save_weights

from .. import __version__
from ..analysis import evaluate
from ..core import EquipoiseError, Output, Spec
from ..data import Task, load_task
from ..store import Record, Store, now
from ..train import Diverged, Recipe, Run, Stopped, TaskChoice, fit, predict

Tell = Callable[[int, dict[str, list[float]]], None]  # epochs done, curves so far


@dataclass(frozen=True)
class Job:
    """A training and all that continues or corrects it, parents first: what one worker does in one go."""

    recipes: tuple[Recipe, ...]

    @property
    def training(self) -> Recipe:
        return self.recipes[0]

    def finished_in(self, store: Store) -> bool:
        return all(store.has(recipe.key) for recipe in self.recipes)


def jobs_of(recipes: Iterable[Recipe]) -> list[Job]:
    """The jobs of these recipes, in their order; what needs the same trained network shares a job."""
    families: dict[str, dict[str, Recipe]] = {}
    for recipe in recipes:
        line = [recipe]
        while parent := line[0].parent:
            line.insert(0, parent)
        family = families.setdefault(line[0].key, {})
        for member in line:
            family.setdefault(member.key, member)
    return [Job(tuple(family.values())) for family in families.values()]


def do(job: Job, store: Store, device: torch.device, tell: Tell, stop: Callable[[], bool]) -> bool:
    """Do what is missing of `job`; False if another process is at work on it."""
    with store.claim(job.training.key) as mine:
        if not mine:
            return False
        for recipe in job.recipes:
            if not store.has(recipe.key):
                work = partial(_correct, recipe, store)
                if recipe.posthoc is None:
                    work = partial(_train, recipe, store, device, tell, stop)
                _recorded(store, recipe, work, device)
    return True


def _recorded(store: Store, recipe: Recipe, work: Callable[[], None], device: torch.device) -> None:
    """Do `work`; where it fails for a reason of its own, the failure is the record."""
    started = time.monotonic()
    try:
        work()
    except (Stopped, OSError):
        raise
    except ValueError as error:
        if isinstance(error.__cause__, OSError):  # a full or read-only disk says nothing about the recipe
            raise
        store.put(_failure(recipe, error, started, device))
    except Exception as error:
        store.put(_failure(recipe, error, started, device))


def _train(recipe: Recipe, store: Store, device: torch.device, tell: Tell, stop: Callable[[], bool]) -> None:
    started = time.monotonic()
    task = task_on(recipe.task, recipe.seed, device)
    weights = load_weights(store.weights(_trained(recipe, store).key)) if recipe.parent else None
    run = Run(recipe, task, device, weights)
    counts = task.class_counts.numpy()
    curves = fit(
        run,
        evaluate=lambda logits, labels: evaluate(logits, labels, counts),
        folder=store.scratch(recipe.key),
        on_epoch=tell,
        stop=stop,
    )
    record = Record(
        key=recipe.key,
        recipe=recipe.to_dict(),
        state="finished",
        class_names=task.class_names,
        class_counts=tuple(counts.tolist()),
        data=task.fingerprint,
        parameters=sum(p.numel() for p in run.network.parameters()),
        seconds=time.monotonic() - started,
        ended=now(),
        versions=versions(),
        device=device_name(device),
        metrics={name: values[-1] for name, values in curves.items()},
        curves=curves,
    )
    outputs = {"valid": predict(run, task.valid), "test": predict(run, task.test)}
    weights = {name: tensor.contiguous().cpu() for name, tensor in run.evaluated.state_dict().items()}
    store.put(record, outputs, save_weights(weights))


def _trained(recipe: Recipe, store: Store) -> Record:
    """The record of the training that `recipe` continues or corrects."""
    assert recipe.parent is not None
    trained = store.get(recipe.parent.key)
    if not trained.finished:
        raise EquipoiseError(f"the training it builds on failed: {trained.error}")
    return trained


def _correct(recipe: Recipe, store: Store) -> None:
    """Fit a post-hoc method on stored validation outputs and apply it to the stored outputs."""
    started = time.monotonic()
    trained = _trained(recipe, store)
    weights = load_weights(store.weights(trained.key))
    facts = {
        "class_counts": torch.tensor(trained.class_counts),
        "num_classes": len(trained.class_counts),
        "head_weight": weights.get("head.weight"),
    }
    posthoc = Spec.parse(str(recipe.posthoc)).build("posthoc", **facts)
    valid, test = store.valid(trained.key), store.test_sealed(trained.key)
    metrics = {}
    if len(valid["labels"]):
        posthoc.fit(_output(valid), torch.from_numpy(valid["labels"]))
        valid["logits"] = posthoc(_output(valid)).numpy()
        found = evaluate(valid["logits"], valid["labels"], np.array(trained.class_counts))
        metrics = {f"valid_{name}": value for name, value in found.items()}
    test["logits"] = posthoc(_output(test)).numpy()
    plain = {
        **trained.__dict__,
        "key": recipe.key,
        "recipe": recipe.to_dict(),
        "seconds": time.monotonic() - started,
        "ended": now(),
        "metrics": metrics,
        "curves": {},
        "trained_by": trained.key,
    }
    store.put(Record(**plain), {"valid": valid, "test": test})


def _output(arrays: dict[str, np.ndarray]) -> Output:
    return Output(torch.from_numpy(arrays["logits"]), torch.from_numpy(arrays["features"]).float())


def _failure(recipe: Recipe, error: Exception, started: float, device: torch.device) -> Record:
    told = str(error) if isinstance(error, Diverged | ValueError) else "".join(traceback.format_exception(error))
    return Record(
        key=recipe.key,
        recipe=recipe.to_dict(),
        state="failed",
        class_names=(),
        class_counts=(),
        data="",
        parameters=0,
        seconds=time.monotonic() - started,
        ended=now(),
        versions=versions(),
        device=device_name(device),
        error=told,
        failed_step=error.step if isinstance(error, Diverged) else None,
    )


@lru_cache(maxsize=2)  # a study's jobs come a seed at a time, so the task of a seed is built once
def task_on(choice: TaskChoice, seed: int, device: torch.device) -> Task:
    """The task of a recipe, its images on the device."""
    return load_task(**choice.__dict__, seed=seed).to(device)


def versions() -> dict[str, str]:
    return {
        "equipoise": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def device_name(device: torch.device) -> str:
    """A name people know, such as 'NVIDIA H200' or 'CPU x86_64'."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU {platform.machine()}"


def best_device(name: str | None) -> torch.device:
    """The device asked for, else a GPU if there is one, else the CPU."""
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
