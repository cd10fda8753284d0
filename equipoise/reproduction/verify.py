"""Trains a recorded or published cell again, with new seeds, and says whether it comes out as before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from ..core import EquipoiseError, known
from ..core.words import counted
from ..report.render.words import number
from ..store import Store
from ..study import How, Listener, Study, bound
from ..train import DIALS, Recipe
from .judgement import FEWEST, OUTSIDE, Judgement, judge, new_mean_interval
from .pages import interval
from .published import Cell, Paper
from .records import StudyRecords, records_of
from .training import train_missing


@dataclass(frozen=True)
class Places:
    """What is known: records by study, papers, and the folder with the studies of the papers."""

    records: Mapping[str, StudyRecords]
    papers: Sequence[Paper]
    studies: Path


@dataclass(frozen=True)
class Verification:
    """New runs of a cell beside those recorded, and beside what is published."""

    name: str
    scores: tuple[float, ...]  # of the new runs
    recorded: tuple[float, ...] = ()
    published: tuple[Judgement, ...] = ()  # of the new and the recorded runs together

    @property
    def mean(self) -> float:
        return fmean(self.scores)

    @property
    def expected(self) -> tuple[float, float]:
        """Where the mean of the new runs falls in 95 % of cases, given the recorded ones; NaN if those are too few."""
        return new_mean_interval(self.recorded, len(self.scores))

    @property
    def as_recorded(self) -> bool:
        low, high = self.expected
        return math.isnan(low) or low <= self.mean <= high

    @property
    def holds(self) -> bool:
        """Whether nothing is outside."""
        return self.as_recorded and not any(judgement.state in OUTSIDE for judgement in self.published)

    def sentences(self) -> list[str]:
        told = [f"{self.name}: {number(self.mean, 2)}, the mean of {counted(len(self.scores), 'new run')}."]
        if not math.isnan(self.expected[0]):
            told.append(
                f"Recorded, n = {len(self.recorded)}: such a mean falls into {interval(*self.expected, 2)} in 95 % of "
                f"cases. This one is {'inside' if self.as_recorded else 'outside'}."
            )
        for j in self.published:
            told.append(
                f"Published, {j.cell.table}: {j.cell.told}. Here {number(j.mean, 2)}, n = {j.n}: a mean like the "
                f"published one falls into {interval(j.low, j.high, 2)}. It is: {j.state}."
            )
        return told


def verify(name: str, places: Places, store: Store, how: How, listener: Listener, runs: int = FEWEST) -> Verification:
    """Train STUDY/METHOD again with seeds that no record has, and compare with what is recorded and published."""
    study_name, _, method = name.partition("/")
    recorded = places.records.get(study_name)
    cells = [c for paper in places.papers for c in paper.cells if (c.study, c.method) == (study_name, method)]
    study = _study(study_name, method, recorded, cells, places.studies)
    study = bound(replace(study, seeds=_new_seeds(recorded, runs)), store)
    train_missing([study], store, how, listener)
    new = records_of(study.document(), store)
    scores = new.shown_scores(method)
    if not scores:
        errors = [f"seed {run.seed}: {run.error}" for run in new.runs if run.error]
        raise EquipoiseError(f"no run of {name} has finished: {'; '.join(errors)}")
    return Verification(
        name,
        tuple(scores),
        tuple(recorded.shown_scores(method)) if recorded else (),
        tuple(judge(cell, recorded.joined(new) if recorded else new) for cell in cells),
    )


def _study(name: str, method: str, recorded: StudyRecords | None, cells: Sequence[Cell], studies: Path) -> Study:
    """The method, and what a published gain is against, with their recorded recipes, else those of the study's file."""
    file = studies / f"{name}.toml"
    if not recorded and not file.is_file():
        raise EquipoiseError(f"{name!r} is neither recorded nor a study in {studies}; write STUDY/METHOD")
    asked = recorded or Study.from_toml(file)
    methods = dict(Study.from_toml(file).methods) if file.is_file() else {}
    if recorded:
        methods |= {each: _recipe(plain) for each, plain in recorded.methods.items()}
    names = dict.fromkeys([known("method", method, methods), *(cell.against for cell in cells if cell.against)])
    chosen = {each: methods[each] for each in names}
    return Study(name, f"Does {method} come out again?", method, asked.metric, (0,), chosen)


def _recipe(plain: Mapping[str, Any]) -> Recipe:
    """A recipe of the records, which leave out the dials that are not used."""
    return Recipe.from_dict({**dict.fromkeys(DIALS), **plain, "seed": 0})


def _new_seeds(recorded: StudyRecords | None, runs: int) -> tuple[int, ...]:
    first = 1 + max((run.seed for run in recorded.runs), default=-1) if recorded else 0
    return tuple(range(first, first + runs))
