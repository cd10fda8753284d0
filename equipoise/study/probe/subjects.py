"""The runs that an analysis looks at, their trained networks, and what is kept of each so that it is measured once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_weights
from torch import Tensor

from ...analysis import mean_interval
from ...core import EquipoiseError
from ...data import Split
from ...store import Damaged, Record, Store
from ...store.analysis import Estimated, RunName
from ...train import Recipe, Run
from ..run.bf16 import check_precision
from ..run.hardware import layout_of
from ..run.images import task_of

FOLDER = "analysis"  # of a store: what was measured of each run

Numbers = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """A finished run of a study."""

    method: str
    seed: int
    record: Record

    @property
    def key(self) -> str:
        return self.record.key

    @property
    def named(self) -> RunName:
        return RunName(self.method, self.seed)

    @property
    def trained(self) -> bool:
        """Whether it has a network of its own; a post-hoc correction has outputs only."""
        return self.record.trained_by is None


def subjects_of(store: Store) -> list[Subject]:
    """The finished runs, method by method as the study has them; without those of which a file is damaged."""
    study = store.study()
    return [
        # the study knows where its data lies now; in all else a recipe of the same key is the same
        Subject(method.name, seed, replace(store.get(key), recipe={**method.recipe, "seed": seed}))
        for method in study.methods
        for seed, key in zip(study.seeds, method.keys, strict=True)
        if store.finished(key) and not store.damage(key)
    ]


def by_method(subjects: Iterable[Subject]) -> dict[str, list[Subject]]:
    groups: dict[str, list[Subject]] = {}
    for subject in subjects:
        groups.setdefault(subject.method, []).append(subject)
    return groups


def few_of(subjects: Sequence[Subject], most: int) -> list[int]:
    """Places of as many seeds of every method as make at most so many runs, at least one of each."""
    each = max(1, most // max(len(by_method(subjects)), 1))
    chosen = {s.key for group in by_method(subjects).values() for s in group[:each]}
    return [i for i, s in enumerate(subjects) if s.key in chosen]


def network_of(store: Store, record: Record, device: torch.device) -> Run:
    """The run of a record with its trained weights in place."""
    recipe = Recipe.from_dict(record.recipe)
    check_precision([recipe], device)
    first = load_weights(store.weights(recipe.parent.key)) if recipe.parent else None
    run = Run(recipe, task_of(recipe, store, device), device, first, layout_of(recipe, store), from_file=False)
    run.evaluated.load_state_dict(load_weights(store.weights(record.key)))
    return run


def drawn(split: Split, most: int, seed: int = 0) -> Split:
    """At most so many samples in a random order, the same ones in the same order at every call."""
    return _taken(split, torch.randperm(len(split), generator=torch.Generator().manual_seed(seed))[:most])


def drawn_by_class(split: Split, most: int, least: int = 2) -> Split:
    """The same with each class by its share of the samples, and with `least` of each that has them: none gets lost."""
    order = torch.randperm(len(split), generator=torch.Generator().manual_seed(0))
    labels = split.labels.cpu()[order]
    share = min(1.0, most / len(split))
    wanted = (share * torch.bincount(labels)).round().long().clamp_min(least)
    return _taken(split, order[place_in_class(labels) < wanted[labels]])


def place_in_class(labels: Tensor) -> Tensor:
    """How many samples of its class come before each sample: (N,) -> (N,)."""
    order, counts = labels.argsort(stable=True), torch.bincount(labels)
    place = torch.empty_like(labels)
    place[order] = torch.arange(len(labels), device=labels.device) - (counts.cumsum(0) - counts)[labels[order]]
    return place


def _taken(split: Split, rows: Tensor) -> Split:
    there = rows.to(split.labels.device)
    images = split.images[there] if isinstance(split.images, Tensor) else split.images.take(rows)
    return Split(images, split.labels[there])


# -- what is kept of a run -------------------------------------------------------------------------------------------


def measured_once(
    store: Store,
    key: str,
    part: str,
    settings: Numbers,
    measure: Callable[[], Numbers],
    intact: Callable[[Numbers], bool] = lambda numbers: True,
) -> Numbers:
    """What `measure` gives, measured only where the store does not have it already, undamaged, with these settings.

    A run that cannot be measured, its activations not finite, has a `problem` instead of numbers; it is tried again.
    """
    name = f"{FOLDER}/{key}.{part}.json"
    with suppress(Damaged):
        before = store.read(name, _Kept.from_dict) if (store.path / name).exists() else None
        if before and before.settings == settings and intact(before.found):
            return before.found
    try:
        numbers = measure()
    except Damaged as error:
        return {"problem": str(error)}
    except EquipoiseError:  # of what was asked, not of this run
        raise
    except ValueError as error:
        return {"problem": str(error)}
    store.write_json(name, plain({"settings": settings, "found": numbers}), indent=None)
    return json.loads(json.dumps(plain(numbers)))


@dataclass(frozen=True)
class _Kept:
    """A file of `FOLDER`: what was measured, and how."""

    settings: Numbers
    found: Numbers

    @classmethod
    def from_dict(cls, plain: Numbers) -> _Kept:
        return cls(dict(plain["settings"]), dict(plain["found"]))


def plain(value: Any) -> Any:
    """As JSON has it: arrays as lists, numbers with six digits, what is not finite as null."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray | Tensor):
        return plain(value.tolist())
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


# -- over seeds ------------------------------------------------------------------------------------------------------


def over_seeds(values: Sequence[float | None]) -> Estimated:
    """Mean of the known values over seeds, with n and its 95 % interval."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    low, high = mean_interval(known)
    return Estimated(len(known), float(np.mean(known)) if known else math.nan, low, high)


def columns_over_seeds(rows: Sequence[Sequence[float | None]]) -> tuple[Estimated, ...]:
    """The same of each column of the rows, one row per seed."""
    return tuple(over_seeds(column) for column in zip(*rows, strict=True))
