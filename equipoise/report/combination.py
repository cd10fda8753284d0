"""Several studies of the same methods, put together: from what each collected to what all of them say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..analysis import smallest_n_for_claim
from ..analysis.statistics.combined import LEAST, Combined, combine_scores
from ..core import EquipoiseError
from ..core.words import counted
from ..store.recipes import identity
from .collect import flat
from .collected import Collected, Method
from .premises import ACCEPTED
from .render.paper import one_metric
from .titles import data_name, data_title, network_name

FEW = 3  # so many dials, or missing methods, are named; of more the tables tell


@dataclass(frozen=True)
class DataSet:
    """One of the settings that are put together: a data set, an imbalance ratio or a network, by its `name`.

    `methods` are those of all studies that were made of it.
    """

    name: str
    studies: tuple[str, ...]
    baseline: Method
    methods: tuple[Method, ...]

    @property
    def seeds(self) -> int:
        """Finished runs of the baseline."""
        return sum(run.finished for run in self.baseline.runs)

    @property
    def classes(self) -> int:
        return next((len(run.record.class_names) for run in self.baseline.runs if run.record), 0)


@dataclass(frozen=True)
class Combination:
    """What several data sets say together. `left_out` are studies that do not count, with the reason."""

    data: tuple[DataSet, ...]
    combined: Combined
    left_out: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]


def combine_studies(studies: Sequence[Collected], baseline: str | None = None) -> Combination:
    """Put studies together that compare the same methods; `baseline` is by default that of the studies.

    Studies of one data set, network and training are one data set here, with the methods of all of them.
    """
    if not studies:
        raise EquipoiseError("there is no study to combine; give the folders that 'equipoise run' wrote")
    metric, baseline = one_metric(studies), baseline or _one_baseline(studies)
    left_out = tuple((results.name, reason) for results in studies if (reason := _unfit(results, baseline)))
    fit = [results for results in studies if not _unfit(results, baseline)]
    if not fit:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out)
        raise EquipoiseError(f"none of the studies can be combined. {reasons}")
    data = _data_sets(fit, baseline)
    combined = combine_scores({each.name: _scores(each, metric) for each in data}, baseline, metric=metric)
    return Combination(data, combined, left_out, (*_told_left_out(left_out, len(studies)), *_notices(data, combined)))


def _told_left_out(left_out: Sequence[tuple[str, str]], number: int) -> Iterator[str]:
    """Of so many studies, those that do not count, by the reason."""
    for reason in dict.fromkeys(reason for _, reason in left_out):
        names = [name for name, why in left_out if why == reason]
        yield f"{len(names)} of {counted(number, 'study', 'studies')} left out ({', '.join(names)}): {reason}."


def _one_baseline(studies: Sequence[Collected]) -> str:
    names = list(dict.fromkeys(results.baseline for results in studies))
    if len(names) > 1:
        raise EquipoiseError(
            f"the studies have unlike baselines, {', '.join(names)}: say which method all are compared with, "
            f"such as --baseline {names[0]} (in Python baseline={names[0]!r})"
        )
    return names[0]


def _unfit(results: Collected, baseline: str) -> str:
    """Why a study cannot count; empty where it can."""
    method = next((m for m in results.methods if m.name == baseline), None)
    if method is None:
        return f"there is no method {baseline}"
    if not any(run.finished for run in method.runs):
        return f"no run of {baseline} has finished"
    if results.verdict.broken and ACCEPTED not in results.verdict.broken:
        return "training has not converged, so differences are no evidence"
    return ""


def _data_sets(studies: Sequence[Collected], baseline: str) -> tuple[DataSet, ...]:
    """The studies by what they are about: one baseline recipe is one data set."""
    groups: dict[str, list[Collected]] = {}
    for results in studies:
        groups.setdefault(identity(_method(results, baseline).recipe), []).append(results)
    names = _names([(_method(of_one[0], baseline), of_one) for of_one in groups.values()])
    return tuple(_data_set(name, of_one, baseline) for name, of_one in zip(names, groups.values(), strict=True))


def _data_set(name: str, studies: Sequence[Collected], baseline: str) -> DataSet:
    methods: dict[str, Method] = {}
    for results in studies:
        for method in results.methods:
            if method.name in methods and method.name != baseline:
                raise EquipoiseError(f"two of the studies have {method.name} on {name}; give one of them")
            methods.setdefault(method.name, method)
    return DataSet(name, tuple(r.name for r in studies), methods[baseline], tuple(methods.values()))


def _names(settings: Sequence[tuple[Method, Sequence[Collected]]]) -> list[str]:
    """What to call each: its data; where others have the same, also what it differs from them in, or its studies."""
    recipes = [method.recipe for method, _ in settings]
    names = [data_title(recipe) for recipe in recipes]
    for more in (
        [network_name(recipe) for recipe in recipes],
        _differences([flat(recipe) for recipe in recipes], names),
        ["+".join(results.name for results in of_one) for _, of_one in settings],
        [str(place) for place in range(1, len(recipes) + 1)],
    ):
        words = {name: {word for other, word in zip(names, more, strict=True) if other == name} for name in names}
        names = [
            f"{name}, {word}" if len(words[name]) > 1 and word else name for name, word in zip(names, more, strict=True)
        ]
    return names


def _differences(recipes: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[str]:
    """The dials in which a recipe differs from others of its name, where they are few: "epochs 30"."""
    told = []
    for own, name in zip(recipes, names, strict=True):
        others = [recipe for recipe, other in zip(recipes, names, strict=True) if other == name]
        dials = [dial for dial in own if any(recipe.get(dial) != own[dial] for recipe in others)]
        few = dials if len(dials) <= FEW else []
        told.append(", ".join(f"{dial.rpartition('.')[2]} {own[dial]}" for dial in few))
    return told


def _method(results: Collected, name: str) -> Method:
    return next(method for method in results.methods if method.name == name)


def _scores(data: DataSet, metric: str) -> dict[str, list[float]]:
    """Of each method, one for each seed that any has; nan where there is none."""
    known = {m.name: {run.seed: run.metrics[metric] for run in m.runs if run.finished} for m in data.methods}
    seeds = sorted({seed for of_method in known.values() for seed in of_method})
    return {name: [of_method.get(seed, math.nan) for seed in seeds] for name, of_method in known.items()}


def _notices(data: Sequence[DataSet], combined: Combined) -> list[str]:
    """What a reader must know before believing the answer."""
    return [
        *_too_few(len(data), combined),
        *_missing(data),
        *_shared_images(data),
        *_unlike_recipes(data, combined.baseline),
    ]


def _too_few(count: int, combined: Combined) -> list[str]:
    pairs = sum(pair.n > 0 for pair in combined.pairs)
    least = smallest_n_for_claim(combined.alpha, max(pairs, 1))
    if count < LEAST:
        return [
            f"{counted(count, 'data set')} cannot tell what to expect of another one: from {LEAST} on, a mean over "
            f"data sets has an interval, and from {least} on Wilcoxon’s test can tell two methods apart. What each "
            "data set says by itself stands below."
        ]
    if count < least:
        return [
            f"{counted(count, 'data set')} cannot tell any two methods apart by Wilcoxon’s test, whose least p is then "
            f"{2.0 ** (1 - count):.2g}: after Holm over {counted(pairs, 'pair')} that takes {least}. The means over "
            "data sets rest on another test."
        ]
    return []


def _missing(data: Sequence[DataSet]) -> list[str]:
    """Methods that are not everywhere."""
    names = dict.fromkeys(method.name for each in data for method in each.methods)
    notes = []
    for name in names:
        absent = [each.name for each in data if all(method.name != name for method in each.methods)]
        if absent:
            there = len(data) - len(absent)
            notes.append(f"{name} is in {there} of {len(data)} data sets; it is missing in {'; '.join(absent)}.")
    if len(notes) > FEW:
        notes = [f"{len(notes)} of {len(names)} methods are missing in some data sets."]
    more = "A method counts where it is, and ranks are over the data sets that have all methods."
    return [" ".join([*notes, more])] if notes else []


def _shared_images(data: Sequence[DataSet]) -> list[str]:
    count = Counter(data_name(each.baseline.recipe) for each in data)
    shared = [f"{times} of the {len(data)} are of {name}" for name, times in count.items() if times > 1]
    if not shared:
        return []
    return [
        f"{' and '.join(shared)}, so they share images and are not independent: what is said holds for further "
        "settings like these, and is less sure for other images."
    ]


def _unlike_recipes(data: Sequence[DataSet], baseline: str) -> list[str]:
    """Methods of one name whose recipe, against the baseline's, is not the same everywhere."""
    changes: dict[str, list[Mapping[str, str]]] = {}
    for each in data:
        for method in each.methods:
            if method.name != baseline:
                changes.setdefault(method.name, []).append({dial: mine for dial, _, mine in method.changes})
    notes = []
    for name, of_method in changes.items():
        dials = dict.fromkeys(dial for change in of_method for dial in change)
        unlike = [dial for dial in dials if len({change.get(dial) for change in of_method}) > 1]
        if unlike:
            notes.append(f"{name} is not the same everywhere: it differs in {', '.join(unlike)}.")
    return notes
