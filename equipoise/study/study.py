"""`Study`: a question, a baseline, named recipes, seeds and a metric; read from TOML, or built in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..analysis import METRICS
from ..analysis.statistics.priority import Priority, read_priority
from ..core import EquipoiseError, checks, did_you_mean, known
from ..core.annotations import fitted
from ..core.words import shown
from ..data import Task, placed_near
from ..models.weights import file_near
from ..store import SCHEMA, MethodDocument, StudyDocument, StudyHead
from ..train import Mistakes, Recipe, TaskChoice
from .presets import expand_preset
from .toml import read_toml
from .tune.settings import Tuning, read_tuning

_KEYS = (
    "name",
    "question",
    "baseline",
    "metric",
    "priority",
    "seeds",
    "task",
    "base",
    "methods",
    "tune",
    "tuned",
    "progress",
    "accept_short_training",
    "equivalent_within",
)
_TUNED: dict[str, Any] = {"study": str, "trials": int, "sampler": str, "runs": int, "refit": bool}

MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Study(StudyHead):
    """What is asked. `methods` maps a name to its recipe; each is run once for every seed, so runs are paired."""

    methods: Mapping[str, Recipe]
    tuning: Tuning = field(default_factory=Tuning)
    priority: Priority | None = None  # what `metric` needs to know of the classes, where the user has said it
    tuned: Mapping[str, Any] = field(default_factory=dict)  # how it was tuned, where `equipoise tune` wrote it
    progress: bool = False  # whether to record what happens to the classes while training
    accept_short_training: bool = False  # whether claims are wanted though training has not converged
    equivalent_within: float | None = None  # a smaller difference does not matter; in points, or the metric's own unit

    @classmethod
    def from_toml(cls, path: str | Path) -> Study:
        """Read a study. Every mistake in the file is told, with its place and a remedy."""
        path = Path(path)
        plain = read_toml(path)
        try:
            return cls.from_dict(near(plain, path), default_name=name_of(path))
        except Mistakes as error:
            raise Mistakes([f"{path}: {line}" for line in error.lines]) from None

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], default_name: str = "study") -> Study:
        """From the plain data of a TOML file; raises `Mistakes` with all of them."""
        mistakes = [f"no key is named {shown(key)}.{did_you_mean(key, _KEYS)}" for key in plain if key not in _KEYS]
        task, base, methods = (_table(plain, name, mistakes) for name in ("task", "base", "methods"))
        seeds = _seeds(plain.get("seeds", 6), mistakes)
        spaces = {name: m["space"] for name, m in methods.items() if isinstance(m, Mapping) and "space" in m}
        recipes = _recipes(task, base, methods, mistakes)
        if task.get("test") is False:
            mistakes.append("[task]: test = false hides what a study reports on; leave it out")
        tuning = read_tuning(_table(plain, "tune", mistakes), spaces, recipes, _seeds, mistakes)
        tuned = _tuned(_table(plain, "tuned", mistakes), mistakes)
        if len(methods) < 2:
            mistakes.append(f"a study compares at least 2 methods, here are {len(methods)}: add [methods.NAME] tables")
        baseline = plain.get("baseline")
        if baseline is None:
            mistakes.append('no baseline is named: add baseline = "…", one of the methods')
        elif baseline not in list(methods):
            mistakes.append(
                f"the baseline {shown(baseline)} is not among the methods.{did_you_mean(baseline, methods)}"
            )
        metric, priority = _aim(plain, mistakes)
        question = plain.get("question", f"What is better than {baseline}?")
        name = plain.get("name", default_name)
        progress, accepted = plain.get("progress", False), plain.get("accept_short_training", False)
        within = plain.get("equivalent_within")
        if within is not None:
            _try(partial(checks.above, "equivalent_within", within, 0), mistakes)
        _try(partial(checks.file_name, "name", name), mistakes)
        _try(partial(_check_question, question), mistakes)
        _try(partial(checks.truth, "progress", progress), mistakes)
        _try(partial(checks.truth, "accept_short_training", accepted), mistakes)
        if mistakes:
            raise Mistakes(mistakes)
        return cls(
            name=name,
            question=question,
            baseline=str(baseline),
            metric=metric,
            seeds=seeds,
            methods=recipes,
            tuning=tuning,
            priority=priority,
            tuned=tuned,
            progress=progress,
            accept_short_training=accepted,
            equivalent_within=None if within is None else float(within),
        )

    def check(self, choice: TaskChoice, task: Task) -> None:
        """Refuse what the methods that are trained on `choice` cannot do with its data; tells all of them."""
        mistakes: list[str] = []
        for name, recipe in self.methods.items():
            if recipe.task == choice:
                _try(partial(recipe.check, task), mistakes, f"[methods.{name}]: ")
        if mistakes:
            raise Mistakes(mistakes)

    def recipes(self) -> Iterator[tuple[str, Recipe]]:
        """All runs, a seed at a time, so that a study cut short still has pairs."""
        for seed in self.seeds:
            for name, recipe in self.methods.items():
                yield name, replace(recipe, seed=seed)

    def document(self) -> StudyDocument:
        """As study.json has it, for the report: with the keys of all runs."""
        return StudyDocument(
            name=self.name,
            question=self.question,
            baseline=self.baseline,
            metric=self.metric,
            priority=self.priority.to_dict() if self.priority else None,
            seeds=self.seeds,
            methods=tuple(self._method(name, recipe) for name, recipe in self.methods.items()),
            tuned=self.tuned,
            accept_short_training=self.accept_short_training,
            equivalent_within=self.equivalent_within,
        )

    def _method(self, name: str, recipe: Recipe) -> MethodDocument:
        plain = {dial: choice for dial, choice in recipe.to_dict().items() if dial != "seed"}
        return MethodDocument(name, plain, tuple(replace(recipe, seed=seed).key for seed in self.seeds))

    def to_dict(self) -> dict[str, Any]:
        """The content of study.json."""
        return {"schema": SCHEMA, **self.document().to_dict()}


def near(plain: dict[str, Any], file: Path) -> dict[str, Any]:
    """The same with the places of the task's data and of weights looked for beside `file` first."""
    plain = _weights_near(plain, file.parent)
    task = plain.get("task")
    if not isinstance(task, Mapping) or not isinstance(task.get("name"), str):
        return plain
    with suppress(EquipoiseError):  # a name that cannot be read is told with all other mistakes
        return {**plain, "task": {**task, "name": placed_near(task["name"], file.parent)}}
    return plain


def _weights_near(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A table of options, or of further tables, with each file of weights made absolute where `folder` has it."""
    placed = dict(table)
    for name, value in table.items():
        if isinstance(value, Mapping):
            placed[name] = _weights_near(value, folder)
        elif name == "weights" and isinstance(value, str):
            placed[name] = file_near(value, folder)
    return placed


def _table(plain: Mapping[str, Any], name: str, mistakes: list[str]) -> dict[str, Any]:
    table = plain.get(name, {})
    if isinstance(table, Mapping):
        return dict(table)
    mistakes.append(f"{name} must be a table: write [{name}]")
    return {}


def _try(check: Callable[[], object], mistakes: list[str], place: str = "") -> None:
    try:
        check()
    except ValueError as error:
        mistakes.append(f"{place}{error}")


def _check_question(question: Any) -> None:
    """It may be of several lines."""
    checks.title("question", " ".join(question.split()) if isinstance(question, str) else question, longest=1_000)


def name_of(path: Path) -> str:
    """The name of what a file asks, where it says none: the file's, with what no folder can have replaced."""
    return "".join(c if checks.is_in_file_names(c) else "-" for c in path.stem).strip(" ").lstrip(".") or "study"


def _tuned(table: dict[str, Any], mistakes: list[str]) -> dict[str, Any]:
    """How the study was tuned, as `equipoise tune` writes it; the report tells it."""
    for key, value in table.items():
        if key not in _TUNED:
            mistakes.append(f"[tuned]: no key is named {shown(key)}.{did_you_mean(key, _TUNED)}")
        else:
            _try(partial(fitted, key, value, _TUNED[key]), mistakes, "[tuned]: ")
    return table


def _aim(plain: Mapping[str, Any], mistakes: list[str]) -> tuple[str, Priority | None]:
    """The metric that decides, and the priority it comes from if there is one."""
    try:
        if "priority" not in plain:
            return known("metric", plain.get("metric", "balanced_accuracy"), METRICS), None
        priority = read_priority(plain["priority"])
        if "metric" in plain:
            mistakes.append(f"priority means the metric {priority.metric}: leave metric out, or priority")
        return priority.metric, priority
    except EquipoiseError as error:
        mistakes.append(str(error))
        return "balanced_accuracy", None


def _seeds(value: Any, mistakes: list[str]) -> tuple[int, ...]:
    """A number of seeds, or the seeds themselves."""
    if type(value) is int and 1 <= value <= MOST_SEEDS:
        return tuple(range(value))
    whole = isinstance(value, list) and all(type(v) is int and 0 <= v < 2**63 for v in value)
    if whole and len(set(value)) == len(value) and 1 <= len(value) <= MOST_SEEDS:
        return tuple(value)
    mistakes.append(
        f"seeds must be a number of seeds, from 1 to {MOST_SEEDS:,}, or a list of different whole numbers, "
        f"not {shown(value)}"
    )
    return ()


def _recipes(
    task: dict[str, Any], base: dict[str, Any], methods: dict[str, Any], mistakes: list[str]
) -> dict[str, Recipe]:
    """A recipe for each method; a mistake of [task] or [base] is told once, not again for every method."""
    base = _expanded(base, "[base]", mistakes)
    common = _lines(base, task)
    mistakes += [f"[task] or [base]: {line}" for line in common]
    recipes = {}
    for name, options in methods.items():
        _try(partial(checks.title, "a method's name", name), mistakes)
        if not isinstance(options, Mapping):
            mistakes.append(f"methods.{name} must be a table: write [methods.{name}]")
            continue
        try:
            own = _expanded({k: v for k, v in options.items() if k != "space"}, f"[methods.{name}]", mistakes)
            recipes[name] = Recipe.make({**base, **own}, task)
        except Mistakes as error:
            mistakes += [f"[methods.{name}]: {line}" for line in error.lines if line not in common]
    return recipes


def _expanded(options: Mapping[str, Any], place: str, mistakes: list[str]) -> dict[str, Any]:
    try:
        return expand_preset(options)
    except EquipoiseError as error:
        mistakes.append(f"{place}: {error}")
        return {k: v for k, v in options.items() if k != "preset"}


def _lines(options: dict[str, Any], task: dict[str, Any]) -> list[str]:
    try:
        Recipe.make(options, task)
    except Mistakes as error:
        return error.lines
    return []
