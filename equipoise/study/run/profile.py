"""Where a study's time went, in a table people can read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...core.words import counted
from ...data import forget_cached
from ...store import Record, Store, StudyDocument
from ...train import Recipe, Run, StepTimes, profile_step, why_not_stacked
from . import hardware
from .child import Failed, ask
from .images import task_of
from .shared import cache_of

PARTS = ("data", "forward", "backward", "update", "evaluation", "host")


def shares(record: Record, step: StepTimes) -> dict[str, float]:
    """A run's time by part, summing to 1: training split as `step` is, evaluation, and the host's work.

    The host's part is what is left: building the network, capturing, checkpoints, writing outputs.
    """
    whole = max(record.seconds, record.timing["training"] + record.timing["evaluation"])
    parts = {name: t / step.total * record.timing["training"] / whole for name, t in asdict(step).items()}
    parts["evaluation"] = record.timing["evaluation"] / whole
    return parts | {"host": max(0.0, 1 - sum(parts.values()))}


def images_per_second(record: Record) -> float:
    """Of one run, over its own training time (in a pack: its part of the time shared)."""
    return record.timing["images"] / record.timing["training"]


def print_profile(
    store: Store, device: torch.device, console: Console, seconds: float, before: Collection[str] = ()
) -> None:
    """A row for each training of the study's first seed; this call took `seconds`, and runs `before` were there."""
    records = {r.key: r for r in store.records() if r.finished and r.timing}
    table = Table("where the time went", "images/s", *PARTS, box=None, pad_edge=False, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    ways: dict[str | None, list[str]] = {}  # why not as one network: methods
    for name, recipe in _trainings(store.study(), records).items():
        record = records[recipe.key]
        try:
            step, why_not = ask(device, _step_times, recipe, store.path, device)
            ways.setdefault(why_not, []).append(name)
            parts = shares(record, step)
            cells = [f"{100 * parts[part]:.0f} %" for part in PARTS]
        except Failed:
            cells = ["–"] * len(PARTS)
        table.add_row(escape(name), f"{images_per_second(record):,.0f}", *cells)
    forget_cached(cache_of(store))
    console.print(table)
    if device.type == "cuda":
        console.print(escape(_ways(ways)), style="dim")
    here = [record for key, record in records.items() if key not in before]
    if not here:
        return
    images = sum(record.timing["images"] for record in here)
    console.print(
        f"In all {images / max(seconds, 1e-9):,.0f} images/s over {seconds:.0f} s of {device.type.upper()} and host, "
        f"{counted(len(here), 'training')}. Steps were timed on throw-away runs, part by part.",
        style="dim",
    )


def _trainings(study: StudyDocument, records: Mapping[str, Record]) -> dict[str, Recipe]:
    """The methods that were trained from the start, with the first seed that has finished."""
    trainings: dict[str, Recipe] = {}
    for method in study.methods:
        there = [records[key] for key in method.keys if key in records]
        if there and (recipe := Recipe.from_dict(there[0].recipe)).parent is None:
            trainings[method.name] = recipe
    return trainings


def _ways(ways: Mapping[str | None, list[str]]) -> str:
    """In which way the runs of a pack were trained, and why not in the fast one.

    >>> _ways({None: ["plain", "LDAM"], "precision is float32": ["exact"]})
    'As one network: plain, LDAM. On a stream each: exact (precision is float32).'
    """
    slow = "; ".join(f"{', '.join(names)} ({why})" for why, names in ways.items() if why is not None)
    return " ".join(
        f"{way}: {names}."
        for way, names in (("As one network", ", ".join(ways.get(None, []))), ("On a stream each", slow))
        if names
    )


def _step_times(recipe: Recipe, path: Path, device: torch.device) -> tuple[StepTimes, str | None]:
    """Of a throw-away run, and why it cannot be stacked; in another process, as all that computes."""
    store = Store(path)
    run = Run(recipe, task_of(recipe, store, device), device, layout=hardware.layout_of(recipe, store))
    return profile_step(run), why_not_stacked(run)
