"""Scores of a study's runs, paired by seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from zipfile import BadZipFile

import numpy as np

from ..analysis.statistics.priority import Priority, score
from ..store import Store
from .study import Study

Arrays = dict[str, np.ndarray]


def paired_scores(study: Study, store: Store, outputs: Callable[[str], Arrays] | None = None) -> dict[str, list[float]]:
    """Scores of each method, one for each seed, on its validation outputs or on others.

    Nan for a run that failed, is missing, or cannot be judged.
    """
    return _by_method(study, lambda key: _scored(study, store, key, outputs or store.valid))


def valid_scores(study: Study, store: Store) -> dict[str, list[float]]:
    """Scores of each method, one for each seed, on validation data; nan as in `paired_scores`."""
    return _by_method(study, lambda key: valid_score(study, store, key))


def valid_score(study: Study, store: Store, key: str) -> float:
    """Of one run: what its record says where it has the metric, which takes no reading of outputs."""
    metrics = store.get(key).metrics if store.finished(key) else {}
    known = metrics.get(f"valid_{study.metric}")
    return known if known is not None and math.isfinite(known) else _scored(study, store, key, store.valid)


def _by_method(study: Study, scored: Callable[[str], float]) -> dict[str, list[float]]:
    return {
        name: [scored(replace(recipe, seed=seed).key) for seed in study.seeds] for name, recipe in study.methods.items()
    }


def _scored(study: Study, store: Store, key: str, outputs: Callable[[str], Arrays]) -> float:
    value = math.nan
    if store.finished(key):
        record, priority = store.get(key), study.priority or Priority(study.metric)
        with suppress(OSError, BadZipFile, KeyError, ValueError):  # as the report has it: no number may come of it
            arrays = outputs(key)
            value = score(arrays["logits"], arrays["labels"], record.class_counts, priority, record.class_names)
    return value if math.isfinite(value) else math.nan
