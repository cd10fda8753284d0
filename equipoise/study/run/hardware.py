"""How a study's runs are computed on this machine: measured once and kept in its store.

None of it changes what is computed, but the layout in memory changes rounding; so a study that is stopped and taken up
again, or shared by two processes, computes as it began. For the same reason the machine remembers the layouts: another
study of the same recipes computes as this one.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch

from ...core import known
from ...data import Task
from ...models import create_model
from ...store import Store
from ...train import LAYOUTS, Pack, Recipe, Run, fastest_layout, why_not_stacked
from .child import Failed
from .machine import remembered

FILE = "engine.json"
PACK_SIZES = (1, 4, 8, 16)
WORTH_IT = 1.02  # times the images per second of the smaller pack
SHORT_STUDY = 60.0  # seconds; measuring more than the first pack would take as long as it saves
MEMORY_SHARE = 0.8  # of what is free


def layouts(store: Store) -> dict[str, str]:
    """The layout of each network, as it was measured before; empty at a study's start."""
    return store.read(FILE, _known_layouts) if (store.path / FILE).exists() else {}


def _known_layouts(plain: dict[str, Any]) -> dict[str, str]:
    """The same, if every layout is one that there is."""
    return {name: _known_layout(layout) for name, layout in dict(plain.get("layouts", {})).items()}


def _known_layout(layout: Any) -> str:
    if layout not in LAYOUTS:
        raise ValueError(f"{layout!r} is no layout")
    return str(layout)


def layout_of(recipe: Recipe, store: Store) -> torch.memory_format:
    return LAYOUTS[layouts(store).get(_network(recipe), "channels_last")]


def choose_layouts(recipes: Iterable[Recipe], store: Store, measure: Callable[[Recipe], str]) -> None:
    """Decide which layout each network of the recipes has on this CPU, where that is not decided: by `measure`, the
    faster one; where a network cannot be measured, channels last."""
    before = layouts(store)
    new = {_network(recipe): recipe for recipe in recipes if _network(recipe) not in before}
    measured = {}
    for name, recipe in new.items():
        try:
            measured[name] = remembered(f"layout-{_short(name)}", partial(measure, recipe), _known_layout)
        except Failed:
            measured[name] = "channels_last"
    if measured:
        store.write_json(FILE, {"layouts": before | measured})


def measured_layout(recipe: Recipe, task: Task) -> str:
    """The layout that a step is faster with here, measured."""
    images = task.train.images[torch.arange(min(recipe.plan.batch_size // recipe.plan.accumulate, len(task.train)))]
    network = create_model(recipe.model, task.num_classes, norm=recipe.norm, in_channels=images.shape[1])
    return fastest_layout(network, images / 255)


def note_compiled(recipe: Recipe, store: Store, pays: bool) -> None:
    """Keep whether compiling the recipe's network pays here."""
    store.write_json(FILE, {"layouts": layouts(store), "compiled": {**_compiled(store), _network(recipe): pays}})


def compiling_pays(recipe: Recipe, store: Store) -> bool:
    """As it was measured; True where it was not."""
    return _compiled(store).get(_network(recipe), True)


def _compiled(store: Store) -> dict[str, bool]:
    """Of each network, whether compiling it pays, as far as it was measured."""
    return store.read(FILE, _known_compiled) if (store.path / FILE).exists() else {}


def _known_compiled(plain: dict[str, Any]) -> dict[str, bool]:
    found = dict(plain.get("compiled", {}))
    if not all(isinstance(pays, bool) for pays in found.values()):
        raise ValueError("whether compiling pays is true or false")
    return found


def _short(name: str) -> str:
    """A file's name for it."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def _network(recipe: Recipe) -> str:
    """What the speed of a layout depends on."""
    plan = recipe.plan
    return f"{recipe.model}, {recipe.norm}, {recipe.task.name}, batches of {plan.batch_size // plan.accumulate}"


class Packing(NamedTuple):
    """How many runs to train side by side on a GPU, whether compiled, and how many images a second that was."""

    size: int
    rate: float
    compiled: bool = False


def packing(recipe: Recipe, runs: int, task: Task, may_compile: bool) -> Packing:
    """The fastest way to train so many such runs; compiled only where that is allowed, and faster."""
    best = _packing(recipe, runs, task, False)
    if may_compile and why_not_stacked(Run(recipe, task, task.train.labels.device)) is not None:
        best = max(best, _packing(recipe, runs, task, True), key=lambda packing: packing.rate)
    return best


def alike(recipe: Recipe) -> tuple[Any, ...]:
    """What runs of one pack have in common: data and batch size. Procedures have longer steps, for which others would
    wait, and go with each other."""
    return recipe.task, recipe.plan.batch_size, recipe.plain_steps


def even_packs(runs: int, most: int) -> list[int]:
    """Sizes of as few packs as have no more than `most` runs, the first ones of one more where it must be."""
    packs = -(-runs // most)
    least, more = divmod(runs, packs)
    return [least + (pack < more) for pack in range(packs)]


def _packing(recipe: Recipe, runs: int, task: Task, compiled: bool) -> Packing:
    """As many as still make the whole faster, and fit. Only packs that would be made are measured: of ten runs 1, 4, 5
    and 10, because at most eight of them at a time would be five and five."""
    best = Packing(1, 0.0, compiled)
    for size in dict.fromkeys(even_packs(runs, size)[0] for size in PACK_SIZES):
        before = torch.cuda.memory_allocated()
        rate, peak = _measured_rate(recipe, size, task, compiled)
        if rate < WORTH_IT * best.rate:
            break
        best = Packing(size, rate, compiled)
        if runs * recipe.plan.epochs * len(task.train) / rate < SHORT_STUDY:
            return best._replace(size=min(runs, _that_fit((peak - before) / size)))
        if 2 * (peak - before) > MEMORY_SHARE * torch.cuda.mem_get_info()[0]:
            break
    return best


def _that_fit(bytes_each: float) -> int:
    fit = int(MEMORY_SHARE * torch.cuda.mem_get_info()[0] / max(bytes_each, 1.0))
    return max([size for size in PACK_SIZES if size <= fit], default=1)


def _measured_rate(recipe: Recipe, size: int, task: Task, compiled: bool) -> tuple[float, int]:
    """Images per second in all of a pack, and the memory it needs."""
    torch.cuda.reset_peak_memory_stats()
    runs = [Run(replace(recipe, seed=recipe.seed + i), task, task.train.labels.device) for i in range(size)]
    for run in runs:
        if compiled:
            run.compile()
        run.begin_epoch(0)
    pack, steps = Pack(runs), min(40, len(runs[0].rates))
    for _ in range(2):  # the first time captures
        began = time.perf_counter()
        pack.steps(steps)
        for run in runs:
            run.rewind()
        torch.cuda.synchronize()
    rate = size * steps * runs[0].batch_size / (time.perf_counter() - began)
    peak = torch.cuda.max_memory_allocated()
    del pack, runs
    torch.cuda.empty_cache()
    return rate, peak


def device_name(device: torch.device) -> str:
    """A name people know, such as 'NVIDIA H200' or 'CPU x86_64'."""
    if device.type == "cpu":
        return f"CPU {platform.machine()}"
    return torch.cuda.get_device_name(device) if torch.cuda.is_available() else "a GPU elsewhere"


def best_device(name: str | None = None) -> torch.device:
    """The device asked for, if it is there; else a GPU if there is one, else the CPU."""
    gpus = ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))] if torch.cuda.is_available() else []
    return torch.device(known("device", name, ["cpu", *gpus]) if name else (gpus or ["cpu"])[0])
