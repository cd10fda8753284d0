"""Small records: what is worth keeping of a study's runs in a repository, as JSON lines that a diff can be read of.

A file is the study, then its methods with their recipes, then its runs, one line each. It has neither weights nor
predictions, so a study of a hundred runs takes some tens of kilobytes. Several such files one after the other are a
file of several studies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..analysis import evaluate
from ..core import EquipoiseError
from ..core.files import write_whole
from ..report.render.words import is_share
from ..store import Record, Store, StudyDocument
from ..store.recipes import recipe_of_data
from ..store.shapes import maybe, number, recipe, table, text, whole
from ..train.recipe import without_what_came_later

SUFFIX = ".jsonl"
DIGITS = 6  # significant ones of a metric: ten thousand test images give four
OF_VALIDATION = ("valid_accuracy", "valid_balanced_accuracy", "valid_nll")


@dataclass(frozen=True)
class RunRecord:
    """A run at its last epoch. `metrics` are of the test set; those of the validation data begin with `valid_`."""

    method: str
    seed: int
    key: str
    data: str  # fingerprint of the images drawn
    metrics: Mapping[str, float]
    parameters: int
    seconds: float
    ended: str
    device: str
    versions: Mapping[str, str]
    error: str | None = None  # the last line of what a failed run said

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RunRecord:
        return cls(**{field.name: _READERS[field.name](plain.get(field.name)) for field in fields(cls)})


_READERS: dict[str, Any] = {
    "method": text,
    "seed": whole,
    "key": text,
    "data": text,
    "metrics": lambda value: table(value, number),
    "parameters": whole,
    "seconds": number,
    "ended": text,
    "device": text,
    "versions": lambda value: table(value, text),
    "error": maybe(text),
}


@dataclass(frozen=True)
class StudyRecords:
    """A study's question, the recipes of its methods without their seeds, and its runs."""

    name: str
    question: str
    baseline: str
    metric: str
    methods: Mapping[str, Mapping[str, Any]]
    runs: tuple[RunRecord, ...] = ()

    def finished(self, method: str) -> list[RunRecord]:
        """The runs of a method that did not fail, by seed."""
        return sorted((r for r in self.runs if r.method == method and not r.error), key=lambda run: run.seed)

    def scores(self, method: str, metric: str) -> dict[int, float]:
        """Seed -> score of each finished run that has one."""
        return {run.seed: run.metrics[metric] for run in self.finished(method) if metric in run.metrics}

    def shown_scores(self, method: str) -> list[float]:
        """Of the study's own metric, in the unit in which it is shown: percent, where it is a share."""
        unit = 100 if is_share(self.metric) else 1
        return [unit * score for score in self.scores(method, self.metric).values()]

    def text(self) -> str:
        """The lines of the file, in an order that does not depend on when a run was done."""
        head = {"study": self.name, "question": self.question, "baseline": self.baseline, "metric": self.metric}
        methods = [{"of": name, "recipe": plain} for name, plain in self.methods.items()]
        place = {name: i for i, name in enumerate(self.methods)}
        runs = sorted(self.runs, key=lambda run: (place[run.method], run.seed))
        lines = [head, *methods, *({k: v for k, v in asdict(run).items() if v is not None} for run in runs)]
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    def joined(self, other: StudyRecords) -> StudyRecords:
        """These records and the runs that `other` adds; a run that both have is taken from `other`."""
        for name in self.methods.keys() & other.methods.keys():
            if without_what_came_later(self.methods[name]) != without_what_came_later(other.methods[name]):
                raise EquipoiseError(
                    f"{self.name} has records of {name!r} with another recipe, and runs of two recipes are not one "
                    "sample: keep the new ones in another folder with --to, or take the old file away first"
                )
        runs = {run.key: run for run in (*self.runs, *other.runs)}
        return replace(other, methods={**self.methods, **other.methods}, runs=tuple(runs.values()))


def records_of(
    study: StudyDocument, store: Store, recorded: Mapping[str, RunRecord] | None = None, *, peek: bool = False
) -> StudyRecords:
    """What the store has of a study's runs. This opens their test outputs, which the store writes down.

    Runs that it lacks are taken from `recorded`, by key: another study may have had the same run.
    """
    keys = [(m.name, seed, key) for m in study.methods for seed, key in zip(study.seeds, m.keys, strict=True)]
    store.note_opening((key for _, _, key in keys if store.finished(key)), peek=peek)
    runs = [_run(name, seed, store.get(key), store) for name, seed, key in keys if store.has(key)]
    known = recorded or {}
    runs += [replace(known[key], method=name) for name, _, key in keys if key in known and not store.has(key)]
    return StudyRecords(
        name=study.name,
        question=study.question,
        baseline=study.baseline,
        metric=study.metric,
        methods={method.name: _compact(method.recipe) for method in study.methods},
        runs=tuple(runs),
    )


def _compact(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without what is not chosen and without the place of its data."""
    return _chosen(recipe_of_data(plain))


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _chosen(choice) if isinstance(choice, Mapping) else choice
        for name, choice in options.items()
        if choice is not None
    }


def _run(method: str, seed: int, record: Record, store: Store) -> RunRecord:
    error = None if record.finished else (record.error or "no reason was recorded").strip().splitlines()[-1]
    return RunRecord(
        method=method,
        seed=seed,
        key=record.key,
        data=record.data,
        metrics=_metrics(record, store) if record.finished else {},
        parameters=record.parameters,
        seconds=round(record.seconds, 1),
        ended=record.ended,
        device=record.device,
        versions=record.versions,
        error=error,
    )


def _metrics(record: Record, store: Store) -> dict[str, float]:
    test = store.open_test(record.key)
    metrics = evaluate(test["logits"], test["labels"], record.class_counts)
    metrics |= {name: record.metrics[name] for name in OF_VALIDATION if name in record.metrics}
    return {name: _rounded(value) for name, value in metrics.items() if value is not None and math.isfinite(value)}


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


# -- files -------------------------------------------------------------------------------------------------------------


def read_records(path: Path) -> dict[str, StudyRecords]:
    """The studies of a file of records, or of all such files in a folder, by name."""
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    studies: dict[str, StudyRecords] = {}
    for file in files:
        for study in _studies(file):
            studies[study.name] = studies[study.name].joined(study) if study.name in studies else study
    return studies


def _studies(file: Path) -> Iterator[StudyRecords]:
    lines: list[dict[str, Any]] = []
    for place, line in enumerate(file.read_text().splitlines(), 1):
        try:
            plain: dict[str, Any] = table(json.loads(line))
        except ValueError as error:
            raise EquipoiseError(f"{file}, line {place} is no record: {error}") from None
        if "study" in plain and lines:
            yield _study(file, lines)
            lines = []
        lines.append(plain)
    if lines:
        yield _study(file, lines)


def _study(file: Path, lines: list[dict[str, Any]]) -> StudyRecords:
    head, *rest = lines
    try:
        return StudyRecords(
            name=text(head["study"]),
            question=text(head["question"]),
            baseline=text(head["baseline"]),
            metric=text(head["metric"]),
            methods={text(line["of"]): recipe(line["recipe"]) for line in rest if "recipe" in line},
            runs=tuple(RunRecord.from_dict(line) for line in rest if "recipe" not in line),
        )
    except (ValueError, KeyError) as error:
        raise EquipoiseError(f"{file} has records that cannot be read: {error}") from None


def keep_records(studies: Iterable[StudyRecords], folder: Path) -> list[Path]:
    """Write each study to a file of its name in `folder`, with the runs that are there already; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for study in studies:
        path = folder / f"{study.name}{SUFFIX}"
        kept = read_records(path).get(study.name) if path.exists() else None
        write_whole(path, (kept.joined(study) if kept else study).text().encode())
        written.append(path)
    return written
