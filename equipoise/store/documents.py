"""The documents of a store that study writes and report reads: one frozen class each, with one reader.

`Store.write` writes them and `Store.document` reads them; the schema is theirs to add and to check. A reader takes what
JSON gave and raises ValueError, KeyError or TypeError where that is not the document, which becomes a sentence.
The two large ones, analysis.json and sensitivity.json, have files of their own here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol, Self

from .filled import Filled
from .recipes import identity, recipe_of_data
from .shapes import Key, RecipeTable, key, table


class Document(Protocol):
    """A JSON file of a store: what `to_dict` gives, `from_dict` reads."""

    FILE: str

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], /) -> Self: ...


def _by_seed(value: Any) -> dict[int, str]:
    return {int(seed): of_run for seed, of_run in table(value, key).items()}


@dataclass(frozen=True)
class MethodDocument:
    """A method of a study: its recipe without the seed, and the key of its run for each of the seeds."""

    name: str
    recipe: RecipeTable
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class StudyHead:
    """Which study it is and what it asks: what the study, its document and its report begin with."""

    name: str
    question: str
    baseline: str
    metric: str
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class StudyDocument(StudyHead, Filled):
    """study.json: the question asked, as the report needs it."""

    methods: tuple[MethodDocument, ...]
    priority: Mapping[str, Any] | None = None
    tuned: Mapping[str, Any] = field(default_factory=dict)  # how it was tuned, where `equipoise tune` wrote it
    accept_short_training: bool = False  # whether claims are wanted though training has not converged
    rounds: bool = False  # whether it adds seeds in rounds, by a plan in a file of its own
    equivalent_within: float | None = None  # a smaller difference does not matter; in points, or the metric's own unit

    FILE = "study.json"

    @property
    def keys(self) -> tuple[str, ...]:
        """Of all runs, method by method."""
        return tuple(k for method in self.methods for k in method.keys)

    @property
    def compared_with(self) -> MethodDocument:
        """The baseline."""
        return next(method for method in self.methods if method.name == self.baseline)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        study = super().from_dict(plain)
        if any(len(method.keys) != len(study.seeds) for method in study.methods):
            raise ValueError("a method has not one run for each seed")
        if len({method.name for method in study.methods}) != len(study.methods):
            raise ValueError("two of its methods have one name")
        return study

    def to_dict(self) -> dict[str, Any]:
        plain = super().to_dict()
        unsaid = [name for name in ("accept_short_training", "rounds", "equivalent_within") if not plain[name]]
        return {name: value for name, value in plain.items() if name not in unsaid}


@dataclass(frozen=True)
class Opening:
    """A reading of test outputs for the first time: `peek` says that it was before the study had ended."""

    when: str
    by_version: str
    peek: bool
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Compared:
    """A method as it was compared: its recipe without the seed, and the keys of its finished runs by their seeds."""

    name: str
    recipe: RecipeTable
    runs: Annotated[Mapping[int, str], _by_seed]


@dataclass(frozen=True)
class Comparison:
    """What a report compared on the test set: so many methods with one of them, by one metric."""

    when: str
    by_version: str
    metric: str
    priority: Mapping[str, Any] | None
    baseline: Compared
    methods: tuple[Compared, ...]  # without the baseline

    def says_as_much_as(self, other: Comparison) -> bool:
        """Whether it is the same but for the time and the version."""
        return replace(self, when=other.when, by_version=other.by_version) == other


def aim_of(asked: StudyDocument | Comparison) -> str:
    """The metric, and the priority if there is one, as a text."""
    return asked.metric + ("" if asked.priority is None else json.dumps(asked.priority, sort_keys=True))


def same_method(study: MethodDocument, compared: Compared) -> bool:
    """Whether the one has the recipe of the other, or runs of it: a new version may write more into a recipe."""
    return identity(study.recipe) == identity(compared.recipe) or not {*study.keys}.isdisjoint(compared.runs.values())


@dataclass(frozen=True)
class Opened(Filled):
    """opened.json: when test outputs were read, of which runs, and what was compared, in the order it happened.

    `lost` is when the file was found damaged or missing and begun anew: what had been opened before is not known then.
    """

    first_opened: str
    by_version: str
    openings: tuple[Opening, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    lost: str | None = None

    FILE = "opened.json"

    @property
    def keys(self) -> frozenset[str]:
        """Of all runs whose test outputs were read."""
        return frozenset(k for opening in self.openings for k in opening.keys)

    def compared_for(self, study: StudyDocument) -> tuple[Comparison, ...]:
        """What was compared on this study's data: on its task, or by runs of it."""
        task, keys = recipe_of_data(study.compared_with.recipe).get("task"), {*study.keys}
        return tuple(
            comparison
            for comparison in self.comparisons
            if recipe_of_data(comparison.baseline.recipe).get("task") == task
            or not keys.isdisjoint(comparison.baseline.runs.values())
        )
