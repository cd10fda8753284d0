"""A board: scores of methods on data sets from any number of studies, each row with what makes it worth believing.

A row needs `LEAST_SEEDS` finished seeds, the fingerprint of the images of each, and the version that trained it. What
does not have them is refused, with the reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from ..core import Spec
from ..core.words import counted
from ..store import Record
from .collected import Collected, Estimate, Method, Run
from .titles import data_title, network_name

LEAST_SEEDS = 6  # with fewer no exact paired test can show anything at 5 %


@dataclass(frozen=True)
class BoardRow:
    """A method on a data set. `fingerprint` is the same where the same images were drawn for the same seeds.

    `changes` say in what the recipe differs from its study's baseline; `marks` what a reader should know.
    """

    method: str
    data: str
    network: str
    study: str
    estimates: Mapping[str, Estimate]
    seeds: tuple[int, ...]
    fingerprint: str
    version: str
    parameters: int
    keys: tuple[str, ...]
    changes: str
    marks: tuple[str, ...]
    recipe: Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """What is not on the board: a method of a study, or with `method` empty all of a study, and why."""

    study: str
    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.method} of {self.study}: {self.reason}" if self.method else f"{self.study}: {self.reason}"


@dataclass(frozen=True)
class Board:
    """Rows by data set, then method; and what was refused."""

    rows: tuple[BoardRow, ...]
    refused: tuple[Refused, ...]


def make_board(studies: Iterable[Collected], refused: Iterable[Refused] = ()) -> Board:
    """The board of these studies; `refused` are those that could not even be read."""
    rows: list[BoardRow] = []
    left_out = list(refused)
    for results in studies:
        for method in results.methods:
            reason = _problem(method) or _again(method, rows)
            if reason:
                left_out.append(Refused(results.name, method.name, reason))
            else:
                rows.append(_row(results, method))
    rows.sort(key=lambda row: (row.data, row.network, row.method, row.study))
    return Board(tuple(rows), tuple(left_out))


def _problem(method: Method) -> str:
    """Why a method cannot have a row; empty where it can."""
    runs = _finished(method)
    if len(runs) < LEAST_SEEDS:
        return f"{counted(len(runs), 'finished seed')}, and a row needs {LEAST_SEEDS}"
    if unknown := [run.seed for run in runs if not _record(run).data]:
        return f"no fingerprint says which images were drawn (seed {', '.join(map(str, unknown))})"
    if any("equipoise" not in _record(run).versions for run in runs):
        return "no version of equipoise is recorded"
    return ""


def _again(method: Method, rows: Sequence[BoardRow]) -> str:
    keys = {run.key for run in _finished(method)}
    same = next((row for row in rows if keys == {*row.keys}), None)
    return f"the same runs are on the board as {same.method} of {same.study}" if same else ""


def _row(results: Collected, method: Method) -> BoardRow:
    runs = _finished(method)
    records = [_record(run) for run in runs]
    failed = sum(run.state == "failed" for run in method.runs)
    marks = [
        *([f"{counted(failed, 'run')} failed"] if failed else []),
        *(["training had not converged"] if results.verdict.broken else []),
    ]
    return BoardRow(
        method=method.name,
        data=data_title(method.recipe),
        network=network_name(method.recipe),
        study=results.name,
        estimates=method.estimates,
        seeds=tuple(run.seed for run in runs),
        fingerprint=_fingerprint(runs),
        version=", ".join(sorted({record.versions["equipoise"] for record in records})),
        parameters=records[0].parameters,
        keys=tuple(run.key for run in runs),
        changes=", ".join(f"{dial} = {mine}" for dial, _, mine in method.changes) or "as its baseline",
        marks=tuple(marks),
        recipe=_published(method.recipe),
    )


def _finished(method: Method) -> list[Run]:
    return [run for run in method.runs if run.finished and run.record]


def _record(run: Run) -> Record:
    assert run.record is not None
    return run.record


def _fingerprint(runs: Sequence[Run]) -> str:
    """Of the images drawn for each seed, all in one."""
    drawn = "\n".join(f"{run.seed} {_record(run).data}" for run in sorted(runs, key=lambda run: run.seed))
    return hashlib.sha256(drawn.encode()).hexdigest()[:12]


def _published(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without places on the disk of the person who ran it: of paths the last part remains."""
    return {dial: _published(v) if isinstance(v, Mapping) else _without_place(v) for dial, v in recipe.items()}


def _without_place(value: Any) -> Any:
    """
    >>> _without_place("folder(path='/home/me/photos', size=64)"), _without_place("/home/me/net.pt"), _without_place(3)
    ("folder(path='photos', size=64)", 'net.pt', 3)
    """
    if not isinstance(value, str) or "/" not in value:
        return value
    if "(" not in value:
        return PurePath(value).name
    spec = Spec.parse(value)
    return str(replace(spec, params=tuple((name, _without_place(given)) for name, given in spec.params)))
