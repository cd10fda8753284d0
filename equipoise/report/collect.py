"""From a store to `Results`: what a report shows, computed once, for every table, figure and page to read.

All statistics are those of `equipoise.analysis`. A run that is not there, or failed, is NaN; nothing here stops for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..analysis import METRICS, MethodResult, Verdict, compare, evaluate, mean_interval, per_class_accuracy
from ..core import EquipoiseError
from ..store import Record, Store, check_schema


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` seeds and its 95 % interval; NaN where there is nothing to tell it from."""

    n: int
    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Run:
    """One method with one seed: `state` is "finished", "failed" or "missing"; `problem` says what went wrong."""

    method: str
    seed: int
    key: str
    state: str
    record: Record | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(METRICS, math.nan))
    per_class: tuple[float, ...] = ()
    problem: str = ""

    @property
    def finished(self) -> bool:
        return self.state == "finished"


@dataclass(frozen=True)
class Method:
    """A row of the report. `index` chooses its colour (0: the baseline), `rank` counts from 0, the best mean.

    `marks` warn that the comparison is not of like with like; `differences` are (seed, score - baseline's score);
    `changes` are the dials of the recipe at which it differs: (dial, the baseline's choice, this one's);
    `per_class` is empty if the method has other classes than the baseline, or no finished run.
    """

    name: str
    index: int
    rank: int
    result: MethodResult
    recipe: Mapping[str, Any]
    runs: tuple[Run, ...]
    marks: tuple[str, ...]
    changes: tuple[tuple[str, str, str], ...]
    estimates: Mapping[str, Estimate]
    differences: tuple[tuple[int, float], ...]
    per_class: tuple[Estimate, ...]
    curves: Mapping[str, tuple[Estimate, ...]]

    @property
    def is_baseline(self) -> bool:
        return self.index == 0

    @property
    def parameters(self) -> int | None:
        return next((run.record.parameters for run in self.runs if run.record and run.finished), None)


@dataclass(frozen=True)
class Results:
    """A study as far as it has come. `methods` are grouped by tier, and within a tier the best mean comes first."""

    name: str
    question: str
    baseline: str
    metric: str
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]
    verdict: Verdict
    class_names: tuple[str, ...]
    class_counts: tuple[int, ...]
    opened: Mapping[str, Any] | None

    @property
    def answer(self) -> tuple[str, ...]:
        """The verdict in one or two sentences: its headline, then its best method or what so many pairs can tell."""
        said = self.verdict.sentences()
        others = [result.standing for result in self.verdict.methods if result.standing != "baseline"]
        second = 2 + others.index("better") if "better" in others else 1  # as `Verdict.sentences` orders them
        return (said[0], *said[second : second + 1])

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for method in self.methods for run in method.runs)

    @property
    def finished(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.finished)

    @property
    def failed(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.state == "failed")

    @property
    def missing(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.state == "missing")

    @property
    def reference(self) -> Method:
        """The baseline."""
        return next(method for method in self.methods if method.is_baseline)

    @property
    def curve_names(self) -> tuple[str, ...]:
        """The curves any method has, the usual ones first."""
        usual = ["train_loss", "valid_loss", "valid_balanced_accuracy"]
        there = {name for method in self.methods for name in method.curves}
        return tuple([name for name in usual if name in there] + sorted(there - set(usual)))


def collect(store: Store) -> Results:
    """Read the study of `store`, open its test outputs, and compute what the report says."""
    study = _study(store)
    seeds, baseline, metric = tuple(study["seeds"]), study["baseline"], study["metric"]
    runs = {
        method["name"]: tuple(
            _run(store, method["name"], seed, key, metric) for seed, key in zip(seeds, method["keys"], strict=True)
        )
        for method in study["methods"]
    }
    scores = {name: _scores(of_method, metric) for name, of_method in runs.items()}
    verdict = compare(scores, baseline, metric=metric, higher_is_better=METRICS[metric].higher_is_better)
    first = next((run.record for name in (baseline, *runs) for run in runs[name] if run.record), None)
    class_names = first.class_names if first else ()
    methods = [_method(study, rank, result, runs, class_names) for rank, result in enumerate(verdict.methods)]
    return Results(
        name=study["name"],
        question=study["question"],
        baseline=baseline,
        metric=metric,
        seeds=seeds,
        methods=tuple(sorted(methods, key=lambda method: (method.result.tier or math.inf, method.rank))),
        verdict=verdict,
        class_names=class_names,
        class_counts=first.class_counts if first else (),
        opened=store.read_json("opened.json") if (store.path / "opened.json").exists() else None,
    )


def estimate(values: Iterable[float]) -> Estimate:
    """Mean and interval of those values that are known."""
    known = np.array([v for v in values if math.isfinite(v)], dtype=np.float64)
    return Estimate(len(known), float(known.mean()) if len(known) else math.nan, *mean_interval(known))


def _study(store: Store) -> dict[str, Any]:
    study = store.read_json("study.json")
    check_schema(study.get("schema"), "the study")
    if study["metric"] not in METRICS:
        raise EquipoiseError(f"the study's metric is {study['metric']!r}; the report knows {', '.join(METRICS)}")
    names = [method["name"] for method in study["methods"]]
    if study["baseline"] not in names:
        raise EquipoiseError(f"the study's baseline {study['baseline']!r} is not among its methods {', '.join(names)}")
    return study


def _run(store: Store, method: str, seed: int, key: str, metric: str) -> Run:
    if not store.has(key):
        return Run(method, seed, key, "missing")
    record = store.get(key)
    if not record.finished:
        return Run(method, seed, key, "failed", record, problem=record.error or "no reason was recorded")
    try:
        test = store.open_test(key)
        metrics = evaluate(test["logits"], test["labels"], record.class_counts)
        accuracy = per_class_accuracy(test["logits"].argmax(axis=1), test["labels"], len(record.class_counts))
        if math.isinf(metrics[metric]):
            raise ValueError(f"their {metric} is infinite")
    except (OSError, BadZipFile, KeyError, ValueError) as error:
        # a network that diverged without stopping, or a damaged file: no number may come of it
        return Run(method, seed, key, "failed", record, problem=f"its test outputs cannot be judged: {error}")
    return Run(method, seed, key, "finished", record, metrics, tuple(map(float, accuracy)))


def _scores(runs: Sequence[Run], metric: str) -> list[float]:
    return [run.metrics[metric] for run in runs]


def _method(
    study: Mapping[str, Any],
    rank: int,
    result: MethodResult,
    runs: Mapping[str, tuple[Run, ...]],
    class_names: tuple[str, ...],
) -> Method:
    recipes = {method["name"]: method["recipe"] for method in study["methods"]}
    name, baseline = result.name, study["baseline"]
    own, reference = runs[name], runs[baseline]
    others = [other for other in recipes if other != baseline]
    comparable = [run.per_class for run in own if run.record and run.finished and run.record.class_names == class_names]
    return Method(
        name=name,
        index=0 if name == baseline else 1 + others.index(name),
        rank=rank,
        result=result,
        recipe=recipes[name],
        runs=own,
        marks=_marks(recipes[name], recipes[baseline], own, reference),
        changes=_changes(recipes[name], recipes[baseline]),
        estimates={metric: estimate(_scores(own, metric)) for metric in METRICS},
        differences=_differences(own, reference, study["metric"]),
        per_class=tuple(estimate(of_class) for of_class in zip(*comparable, strict=True)),
        curves=_curves(own),
    )


def _marks(
    recipe: Mapping[str, Any], other: Mapping[str, Any], own: Sequence[Run], reference: Sequence[Run]
) -> tuple[str, ...]:
    """In what the comparison is not of like with like."""
    pairs = [(a.record, b.record) for a, b in zip(own, reference, strict=True) if a.finished and b.finished]
    both = [(a, b) for a, b in pairs if a and b]
    unlike = {
        "other task": recipe.get("task") != other.get("task"),
        "other data": any(a.data != b.data for a, b in both),
        "other network": recipe.get("model") != other.get("model")
        or any(a.parameters != b.parameters for a, b in both),
        "other plan": recipe.get("plan") != other.get("plan"),
    }
    return tuple(mark for mark, holds in unlike.items() if holds)


def _changes(recipe: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    mine, theirs = flat(recipe), flat(other)
    dials = [*mine, *(dial for dial in theirs if dial not in mine)]
    return tuple((d, theirs.get(d, "none"), mine.get(d, "none")) for d in dials if mine.get(d) != theirs.get(d))


def flat(recipe: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """A recipe as one text for each dial.

    >>> flat({"loss": "focal", "mix": None, "plan": {"epochs": 30}})
    {'loss': 'focal', 'mix': 'none', 'plan.epochs': '30'}
    """
    texts: dict[str, str] = {}
    for dial, choice in recipe.items():
        if isinstance(choice, Mapping):
            texts |= flat(choice, f"{prefix}{dial}.")
        else:
            texts[prefix + dial] = "none" if choice is None else str(choice)
    return texts


def _differences(own: Sequence[Run], reference: Sequence[Run], metric: str) -> tuple[tuple[int, float], ...]:
    pairs = ((a.seed, a.metrics[metric] - b.metrics[metric]) for a, b in zip(own, reference, strict=True))
    return tuple((seed, difference) for seed, difference in pairs if math.isfinite(difference))


def _curves(runs: Sequence[Run]) -> dict[str, tuple[Estimate, ...]]:
    """Mean of each epoch over the finished runs; a failed run's curve ends where it broke, and would bend the mean."""
    records = [run.record for run in runs if run.record and run.finished]
    names = dict.fromkeys(name for record in records for name in record.curves)
    return {
        name: tuple(
            estimate(values)
            for values in zip_longest(*(_numbers(r.curves.get(name, [])) for r in records), fillvalue=math.nan)
        )
        for name in names
    }


def _numbers(values: Iterable[float | None]) -> list[float]:
    return [math.nan if v is None else float(v) for v in values]
