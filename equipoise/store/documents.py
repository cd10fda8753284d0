"""The documents of a store that study writes and report reads: one frozen class each, with one reader.

`Store.write` writes them and `Store.document` reads them; the schema is theirs to add and to check. A reader takes what
JSON gave and raises ValueError, KeyError or TypeError where that is not the document, which becomes a sentence.
The two large ones, analysis.json and sensitivity.json, have files of their own here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, Self

from .shapes import items, key, maybe, number, recipe, table, text, truth, whole


class Document(Protocol):
    """A JSON file of a store: what `to_dict` gives, `from_dict` reads."""

    FILE: str

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], /) -> Self: ...


@dataclass(frozen=True)
class MethodDocument:
    """A method of a study: its recipe without the seed, and the key of its run for each of the seeds."""

    name: str
    recipe: Mapping[str, Any]
    keys: tuple[str, ...]

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> MethodDocument:
        return cls(text(plain["name"]), recipe(plain["recipe"]), items(plain["keys"], key))


@dataclass(frozen=True)
class StudyDocument:
    """study.json: the question asked, as the report needs it."""

    name: str
    question: str
    baseline: str
    metric: str
    seeds: tuple[int, ...]
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

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> StudyDocument:
        study = cls(
            name=text(plain["name"]),
            question=text(plain["question"]),
            baseline=text(plain["baseline"]),
            metric=text(plain["metric"]),
            seeds=items(plain["seeds"], whole),
            methods=items(plain["methods"], MethodDocument.from_dict),
            priority=maybe(table)(plain.get("priority")),
            tuned=table(plain.get("tuned", {})),
            accept_short_training=truth(plain.get("accept_short_training", False)),
            rounds=truth(plain.get("rounds", False)),
            equivalent_within=maybe(number)(plain.get("equivalent_within")),
        )
        if any(len(method.keys) != len(study.seeds) for method in study.methods):
            raise ValueError("a method has not one run for each seed")
        if len({method.name for method in study.methods}) != len(study.methods):
            raise ValueError("two of its methods have one name")
        return study

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        unsaid = [name for name in ("accept_short_training", "rounds", "equivalent_within") if not plain[name]]
        return {name: value for name, value in plain.items() if name not in unsaid}


@dataclass(frozen=True)
class Opening:
    """A reading of test outputs for the first time: `peek` says that it was before the study had ended."""

    when: str
    by_version: str
    peek: bool
    keys: tuple[str, ...]

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Opening:
        return cls(text(plain["when"]), text(plain["by_version"]), truth(plain["peek"]), items(plain["keys"], key))


@dataclass(frozen=True)
class Compared:
    """A method as it was compared: its recipe without the seed, and the keys of its finished runs by their seeds."""

    name: str
    recipe: Mapping[str, Any]
    runs: Mapping[int, str]

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Compared:
        runs = {int(seed): of_run for seed, of_run in table(plain["runs"], key).items()}
        return cls(text(plain["name"]), recipe(plain["recipe"]), runs)


@dataclass(frozen=True)
class Comparison:
    """What a report compared on the test set: so many methods with one of them, by one metric."""

    when: str
    by_version: str
    metric: str
    priority: Mapping[str, Any] | None
    baseline: Compared
    methods: tuple[Compared, ...]  # without the baseline

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Comparison:
        return cls(
            when=text(plain["when"]),
            by_version=text(plain["by_version"]),
            metric=text(plain["metric"]),
            priority=maybe(table)(plain["priority"]),
            baseline=Compared.from_dict(plain["baseline"]),
            methods=items(plain["methods"], Compared.from_dict),
        )

    def says_as_much_as(self, other: Comparison) -> bool:
        """Whether it is the same but for the time and the version."""
        return replace(self, when=other.when, by_version=other.by_version) == other


@dataclass(frozen=True)
class Opened:
    """opened.json: when test outputs were read, of which runs, and what was compared, in the order it happened.

    `lost` is when the file was found damaged and begun anew: what had been opened before is not known then.
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

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Opened:
        return cls(
            first_opened=text(plain["first_opened"]),
            by_version=text(plain["by_version"]),
            openings=items(plain.get("openings", []), Opening.from_dict),
            comparisons=items(plain.get("comparisons", []), Comparison.from_dict),
            lost=maybe(text)(plain.get("lost")),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
