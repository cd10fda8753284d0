"""From the results of a study to a model that can be used elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ..analysis.statistics.priority import ALL_METRICS
from ..core import EquipoiseError
from ..deploy import (
    Calibration,
    Description,
    Preprocessing,
    Score,
    TrainedModel,
    all_weights,
    fitted_values,
    portable_recipe,
)
from ..deploy.model import check_same
from ..report import Collected, Method
from ..report.collected import Run as ReportedRun
from ..store import Store
from ..study import fitted_run


def model_of_run(store: Store, collected: Collected, method: Method, run: ReportedRun, device: torch.device) -> Any:
    """The model of a finished run of `method`, with what the study says of it."""
    assert run.record is not None
    # the study knows where its data lies now; in all else a recipe of the same key is the same
    record = replace(run.record, recipe={**method.recipe, "seed": run.seed})
    trained, posthoc = fitted_run(store, record, device)
    valid, counts = store.valid(run.key), torch.tensor(record.class_counts)
    description = Description(
        study=collected.name,
        question=collected.question,
        method=method.name,
        seed=run.seed,
        metric=collected.metric,
        verdict=collected.verdict.sentences()[0],
        class_names=record.class_names,
        class_counts=record.class_counts,
        preprocessing=Preprocessing.of(trained),
        calibration=_calibration(valid, counts),
        recipe=portable_recipe(record.recipe),
        fitted={} if posthoc is None else fitted_values(posthoc),
        scores=_scores(method),
        recalls=tuple(Score.of("recall", "percent", e.n, e.mean, e.low, e.high) for e in method.per_class),
        parameters=record.parameters,
        versions=record.versions,
        fingerprint=record.data,
        content=record.recipe["task"].get("content"),
        licence=_licence(trained.evaluated.pretraining, record.recipe["plan"].get("weights")),
    )
    model = TrainedModel(description, all_weights(trained.evaluated), device)
    check_same(model, trained, posthoc)
    return model


def best_method(collected: Collected) -> Method:
    """The first of the verdict's ranking that has a finished run."""
    methods = {method.name: method for method in collected.methods}
    ranked = [methods[result.name] for result in collected.verdict.methods]
    best = next((method for method in ranked if any(run.finished for run in method.runs)), None)
    if best is None:
        raise EquipoiseError(f"{collected.name} has no finished run, so there is no model in it: run the study first")
    return best


def median_run(method: Method, metric: str) -> ReportedRun:
    """The finished run with the median validation score; of an even number the lesser of the middle two.

    Not the best on the test set: a network chosen there would look better than it is, and the scores of the report
    would no longer tell what to expect of it.
    """
    finished = [run for run in method.runs if run.finished]
    if not finished:
        raise EquipoiseError(f"{method.name} has no finished run; choose another method, or run the study again")
    sign = 1 if metric in ALL_METRICS and not ALL_METRICS[metric].higher_is_better else -1
    ordered = sorted(finished, key=lambda run: (sign * _valid_score(run, metric), run.seed))
    return ordered[len(ordered) // 2]


def _valid_score(run: ReportedRun, metric: str) -> float:
    """What the study is about, on validation data; balanced accuracy where its metric is known of test data alone."""
    metrics = run.record.metrics if run.record else {}
    value = metrics.get(f"valid_{metric}", metrics.get("valid_balanced_accuracy"))
    return value if value is not None and math.isfinite(value) else 0.0


def _calibration(valid: Any, counts: torch.Tensor) -> Calibration:
    if not len(valid["labels"]):
        return Calibration()
    return Calibration.fit(torch.from_numpy(valid["logits"]), torch.from_numpy(valid["labels"]), counts)


def _scores(method: Method) -> dict[str, Score]:
    return {
        name: Score.of(ALL_METRICS[name].label, ALL_METRICS[name].unit, e.n, e.mean, e.low, e.high)
        for name, e in method.estimates.items()
        if name in ALL_METRICS and math.isfinite(e.mean)
    }


def _licence(pretraining: Any, weights: str | None) -> str | None:
    """What is known of the weights that training began from: their licence holds for what came of them too."""
    if weights is not None:
        return f"Training began from the weights in {Path(weights).name}; their licence holds for this model too."
    if pretraining is None:
        return None
    began = f"Training began from weights of {pretraining.source}; their licence holds for this model too"
    return f"{began}: {pretraining.licence}" if pretraining.licence else f"{began}."
