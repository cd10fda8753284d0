"""From a store to `Collected`: what a report shows, computed once, for every table, figure and page to read.

All statistics are those of `equipoise.analysis`. A run that is not there, or failed, is NaN; nothing here stops for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np

from ..analysis import (
    METRICS,
    MethodResult,
    Verdict,
    compare,
    evaluate,
    log_softmax,
    mean_interval,
    per_class_accuracy,
    reliability_curve,
)
from ..analysis.statistics.priority import ALL_METRICS, Priority, image_values, score
from ..analysis.statistics.sequential import Rounds
from ..core import EquipoiseError
from ..store import Damaged, Store, StudyDocument
from .collected import Bin, Collected, Estimate, Method, Run
from .data import refuse_unlike_data
from .family import Before
from .images import image_scores
from .premises import audit_of, broken_premise, gains_of, longer_runs, premises_of
from .seal import rounds_of, still_to_do


def collect(store: Store) -> Collected:
    """Read the study of `store`, open its test outputs, and compute what the report says."""
    study, rounds, longer = _study(store), rounds_of(store), longer_runs(store)
    refuse_unlike_data(study, store)
    opened = [*study.keys, *(run.key for run in longer.runs)]
    store.note_opening(filter(store.finished, opened), peek=still_to_do(store) is not None)
    before = Before.of(study, store.opened(), rounds)
    runs = {
        method.name: tuple(_run(store, method.name, seed, key, study) for seed, key in before.runs_of(method))
        for method in study.methods
    }
    runs = {name: _without_later_rounds(of_method, rounds) for name, of_method in runs.items()}
    verdict = replace(_verdict(store, study, runs, before, rounds), seed_seconds=_seed_seconds(runs))
    longer_run = [(run, _run(store, run.method, run.seed, run.key, study)) for run in longer.runs]
    gains = gains_of(longer_run, runs, store, study.metric)
    if broken := broken_premise(gains, study.metric, study.accept_short_training):
        verdict = verdict.on_broken_premise(broken, accepted=study.accept_short_training)
    first = next((run.record for name in (study.baseline, *runs) for run in runs[name] if run.finished), None)
    class_names = first.class_names if first else ()
    leaders = _leaders(runs, verdict)
    methods = [_method(study, rank, result, runs, class_names, leaders) for rank, result in enumerate(verdict.methods)]
    return Collected(
        name=study.name,
        question=study.question,
        baseline=study.baseline,
        metric=study.metric,
        seeds=(*study.seeds, *before.seeds_back),
        methods=tuple(sorted(methods, key=lambda method: (method.result.tier or math.inf, method.rank))),
        verdict=verdict,
        class_names=class_names,
        class_counts=first.class_counts if first else (),
        opened=store.opened(),
        rounds=rounds,
        premises=premises_of(
            study, longer, gains, [run for of_method in runs.values() for run in of_method], audit_of(store)
        ),
    )


def _verdict(
    store: Store,
    study: StudyDocument,
    runs: Mapping[str, tuple[Run, ...]],
    before: Before,
    rounds: Rounds | None,
) -> Verdict:
    """Who is better than the baseline; all that was ever compared on this test set counts."""
    scores = {name: _scores(of_method, study.metric) for name, of_method in runs.items()}
    latest, family = before.comparison(runs), None
    if latest is not None:
        store.note_comparison(latest)
        family = before.family(latest)
        scores |= {name: _scores_of_gone(store, name, before, runs, study) for name in family.gone}
    looks, taken = (rounds.looks, rounds.taken) if rounds else (None, None)
    within = study.equivalent_within
    return compare(
        scores,
        study.baseline,
        metric=study.metric,
        looks=looks,
        taken=taken,
        family=family,
        images=image_scores(runs),
        equivalent_within=None if within is None else within * ALL_METRICS[study.metric].point,
    )


def _seed_seconds(runs: Mapping[str, tuple[Run, ...]]) -> float | None:
    """Computing time of one more seed of all methods; None if some method has not finished a run."""
    taken = [[run.record.seconds for run in of_method if run.record and run.finished] for of_method in runs.values()]
    return sum(sum(seconds) / len(seconds) for seconds in taken) if all(taken) else None


def _scores_of_gone(
    store: Store, name: str, before: Before, runs: Mapping[str, tuple[Run, ...]], study: StudyDocument
) -> list[float]:
    """Of a method that is not in the study any more, where it had the data of the baseline."""
    scores = []
    for reference in runs[study.baseline]:
        run = _run(store, name, reference.seed, before.keys[name].get(reference.seed), study)
        alike = run.record and reference.record and run.record.data == reference.record.data
        scores.append(run.metrics[study.metric] if alike else math.nan)
    return scores


def _without_later_rounds(runs: tuple[Run, ...], rounds: Rounds | None) -> tuple[Run, ...]:
    """The same runs; of a method that a round dropped, those not there are "left out": nobody will ask for them."""
    dropped = rounds is not None and any(runs[0].method in each.dropped for each in rounds.found)
    return tuple(replace(run, state="left out") if dropped and run.state == "missing" else run for run in runs)


def estimate(values: Iterable[float]) -> Estimate:
    """Mean, interval and standard error of those values that are known."""
    return estimates([[value] for value in values])[0]


def estimates(values: Sequence[Sequence[float]]) -> tuple[Estimate, ...]:
    """The same of each column of values (runs, columns), together: a study has many epochs and classes."""
    x = np.array(values, dtype=np.float64).reshape(len(values), -1) if values else np.empty((0, 1))
    known = np.isfinite(x)
    n = known.sum(axis=0)
    mean = np.where(known, x, 0).sum(axis=0) / np.where(n, n, np.nan)
    squares = (np.where(known, x - mean, 0) ** 2).sum(axis=0)
    error = np.sqrt(squares / np.where(n > 1, n - 1, np.nan) / np.where(n, n, np.nan))
    half = error * np.array([_reach(count) for count in n.tolist()])
    columns = (n, mean, mean - half, mean + half, error)
    return tuple(Estimate(*numbers) for numbers in zip(*(column.tolist() for column in columns), strict=True))


@cache
def _reach(n: int) -> float:
    """Half the 95 % interval of a mean of n values, in standard errors."""
    if n < 2:
        return math.nan
    low, high = mean_interval(np.arange(n))
    return (high - low) / 2 / float(np.arange(n).std(ddof=1) / math.sqrt(n))


def _study(store: Store) -> StudyDocument:
    study = store.study()
    if study.metric not in ALL_METRICS:
        raise EquipoiseError(f"the study's metric is {study.metric!r}; the report knows {', '.join(ALL_METRICS)}")
    names = [method.name for method in study.methods]
    if study.baseline not in names:
        raise EquipoiseError(f"the study's baseline {study.baseline!r} is not among its methods {', '.join(names)}")
    return study


def _run(store: Store, method: str, seed: int, key: str | None, study: StudyDocument) -> Run:
    if key is None:
        return Run(method, seed, "", "left out")
    if not store.has(key):
        return Run(method, seed, key, "missing")
    try:
        record = store.get(key)
    except Damaged as damage:
        return Run(method, seed, key, "failed", problem=str(damage))
    if not record.finished:
        return Run(method, seed, key, "failed", record, problem=record.error or "no reason was recorded")
    try:
        test = store.open_test(key)
        metrics, metric = evaluate(test["logits"], test["labels"], record.class_counts), study.metric
        priority = Priority(**study.priority or {"metric": metric})
        asked = (test["logits"], test["labels"], record.class_counts, priority, record.class_names)
        if metric not in METRICS:
            metrics[metric] = score(*asked)
        images = image_values(*asked)
        if math.isinf(metrics[metric]):
            raise ValueError(f"their {metric} is infinite")
    except Damaged as damage:
        return Run(method, seed, key, "failed", record, problem=str(damage))
    except (KeyError, ValueError, TypeError, IndexError) as error:
        # a network that diverged without stopping, or outputs of another shape: no number may come of it
        return Run(method, seed, key, "failed", record, problem=f"its test outputs cannot be judged: {error}")
    predicted, labels = test["logits"].argmax(axis=1), test["labels"]
    return Run(
        method,
        seed,
        key,
        "finished",
        record,
        metrics=metrics,
        per_class=tuple(map(float, per_class_accuracy(predicted, labels, len(record.class_counts)))),
        confusion=Counter(zip(labels.tolist(), predicted.tolist(), strict=True)),
        reliability=_reliability(test["logits"], labels),
        images=images,
    )


def _reliability(logits: np.ndarray, labels: np.ndarray) -> tuple[Bin, ...]:
    """Samples in each bin of confidence, as sums, so that those of several runs can be added."""
    curve = reliability_curve(np.exp(log_softmax(logits)), labels)
    sums = (np.nan_to_num(part * curve.samples) for part in (curve.confidence, curve.accuracy))
    return tuple(Bin(int(n), float(c), round(r)) for n, c, r in zip(curve.samples, *sums, strict=True))


def _scores(runs: Sequence[Run], metric: str) -> list[float]:
    return [run.metrics[metric] for run in runs]


def _leaders(runs: Mapping[str, tuple[Run, ...]], verdict: Verdict) -> dict[str, frozenset[str]]:
    """For each metric the best methods: tier 1 of a comparison on it, and none where all methods are in one tier."""
    leaders = {}
    for metric in {**METRICS, verdict.metric: None}:
        scores = {n: [s if math.isfinite(s) else math.nan for s in _scores(own, metric)] for n, own in runs.items()}
        judged = verdict if metric == verdict.metric else compare(scores, verdict.baseline, metric=metric)
        separates = any(result.tier and result.tier > 1 for result in judged.methods)
        leaders[metric] = frozenset(result.name for result in judged.methods if separates and result.tier == 1)
    return leaders


def _method(
    study: StudyDocument,
    rank: int,
    result: MethodResult,
    runs: Mapping[str, tuple[Run, ...]],
    class_names: tuple[str, ...],
    leaders: Mapping[str, frozenset[str]],
) -> Method:
    recipes = {method.name: method.recipe for method in study.methods}
    name, baseline = result.name, study.baseline
    own, reference = runs[name], runs[baseline]
    others = [other for other in recipes if other != baseline]
    finished = [run for run in own if run.finished]
    comparable = [run for run in finished if run.record and run.record.class_names == class_names]
    return Method(
        name=name,
        index=0 if name == baseline else 1 + others.index(name),
        rank=rank,
        result=result,
        recipe=recipes[name],
        runs=own,
        marks=_marks(recipes[name], recipes[baseline], own, reference),
        changes=_changes(recipes[name], recipes[baseline]),
        leads=frozenset(metric for metric, best in leaders.items() if name in best),
        estimates={metric: estimate(_scores(own, metric)) for metric in {**METRICS, study.metric: None}},
        differences=_differences(own, reference, study.metric),
        per_class=estimates([run.per_class for run in comparable]) if comparable else (),
        confusion=sum((Counter(run.confusion) for run in comparable), Counter()),
        reliability=tuple(
            Bin(*map(sum, zip(*of_bin, strict=True))) for of_bin in zip(*(r.reliability for r in finished), strict=True)
        ),
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
    return {name: _curve([_numbers(record.curves.get(name, [])) for record in records]) for name in names}


def _curve(of_runs: Sequence[Sequence[float]]) -> tuple[Estimate, ...]:
    """Each epoch's estimate; a run that has fewer epochs is not known in the later ones."""
    epochs = list(zip_longest(*of_runs, fillvalue=math.nan))
    return estimates(list(zip(*epochs, strict=True))) if epochs else ()


def _numbers(values: Iterable[float | None]) -> list[float]:
    return [math.nan if v is None else float(v) for v in values]
