"""`MethodTuning`: one method's way through its budget. Everything it knows is in its records, so it can start over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ...core import EquipoiseError
from ...core.words import counted
from ...train import Recipe
from .aim import Aim
from .race import hopeless_trials
from .records import Records
from .space import Point, Space
from .trial import Trial, score

HALF_A_POINT = 0.005  # what a race may lose: a trial that is at most so much better than the leader is not worth runs


class Search(Protocol):
    """Proposes points, a wave at a time, never one twice and never more than its budget."""

    @property
    def prunes(self) -> bool: ...

    def ask(self) -> list[Point]: ...

    def hopeless(self, place: int, runs: int, value: float) -> bool: ...

    def tell(self, values: Sequence[float | None]) -> None: ...


class MethodTuning:
    """Asks a search for points, says which runs they need, and tells their scores, until the budget is spent.

    A wave's trials are told together and in their order, so that what a search proposes does not depend on which run
    ended first. A search that prunes, and a `race`, see a wave after its first seed, its second, …; else all seeds are
    due at once. In a race, trials without hope against the best get no more seeds.
    """

    def __init__(
        self,
        name: str,
        space: Space,
        search: Search,
        seeds: Sequence[int],
        aim: Aim,
        budget: int,
        *,
        race: bool = False,
    ) -> None:
        self.name, self.space, self.search = name, space, search
        self.seeds, self.aim, self.budget, self.race = list(seeds), aim, budget, race
        self.trials: list[Trial] = []  # told
        self.wave: list[Trial] = []
        self.seeds_due = 0

    def due(self, records: Records) -> list[tuple[Trial, Recipe]]:
        """The runs that are missing now; none means that the budget is spent."""
        while self.wave or self._asks():
            runs = [(t, r) for t in self.wave if not t.pruned for r in t.runs(self.seeds[: self.seeds_due])]
            if missing := [(trial, run) for trial, run in runs if not records.has(run.key)]:
                return missing
            self._judge(records)
        return []

    def runs_done(self, records: Records) -> int:
        """Of the budget's runs, those that are done or will never be."""
        whole = len(self.trials) * len(self.seeds)
        return whole + sum(records.has(run.key) for trial in self.wave for run in trial.runs(self.seeds))

    def _asks(self) -> bool:
        """Open the next wave; whether there is one."""
        if len(self.trials) >= self.budget:
            return False
        points = self.search.ask()
        if not points:
            raise EquipoiseError(
                f"{self.name} has only {counted(len(self.trials), 'different trial')}, not the {self.budget} that "
                "every method is to have: give its space more values, or lower trials"
            )
        first = len(self.trials)
        self.wave = [Trial(first + i, point, self.space.at(point)) for i, point in enumerate(points)]
        self.seeds_due = 1 if self.search.prunes or self.race else len(self.seeds)
        return True

    def _judge(self, records: Records) -> None:
        """Score the wave's runs so far; tell the search if that is all of them, else go on with the next seed."""
        for place, trial in enumerate(self.wave):
            if not trial.pruned:
                runs = trial.runs(self.seeds[: self.seeds_due])
                found = score([records.get(run.key) for run in runs], self.aim, records)
                more = self.seeds_due < len(self.seeds)
                # a trial of which a run failed has no score to wait for
                drop = more and (found.value is None or self._is_hopeless(place, found.value))
                self.wave[place] = replace(trial, score=found, pruned=drop)
        if self.race and self.seeds_due < len(self.seeds):
            self._end_hopeless()
        if self.seeds_due < len(self.seeds) and not all(trial.pruned for trial in self.wave):
            self.seeds_due += 1
            return
        self.search.tell([trial.score.value if trial.finished else None for trial in self.wave])
        self.trials += self.wave
        self.wave = []

    def _is_hopeless(self, place: int, value: float) -> bool:
        return self.search.prunes and self.search.hopeless(place, self.seeds_due, value)

    def _end_hopeless(self) -> None:
        """End the trials of the wave that have no hope against the best so far, of this wave or an earlier one."""
        scores, entry = [trial.score.by_seed for trial in (*self.trials, *self.wave)], self.aim.entry
        margin = HALF_A_POINT if entry.unit == "percent" else 0.0
        ends = hopeless_trials(scores, self.seeds_due, higher_is_better=entry.higher_is_better, margin=margin)
        of_wave = ends[len(self.trials) :]
        self.wave = [replace(t, pruned=t.pruned or end) for t, end in zip(self.wave, of_wave, strict=True)]
