"""`MethodTuning`: one method's way through its budget. Everything it knows is in the store, so it can start over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ...core import EquipoiseError
from ...core.words import counted
from ...train import Recipe
from .aim import Aim
from .racing import Racing, part_of
from .records import Records
from .space import Point, Space
from .trial import Trial, score


class Search(Protocol):
    """Proposes points, a wave at a time, never one twice and never more than its budget."""

    @property
    def prunes(self) -> bool: ...

    def ask(self) -> list[Point]: ...

    def hopeless(self, place: int, runs: int, value: float) -> bool: ...

    def tell(self, values: Sequence[float | None]) -> None: ...


@dataclass(frozen=True)
class Due:
    """A run that a trial needs, or the epochs of it up to `until`."""

    trial: Trial
    run: Recipe
    until: int | None = None

    def is_in(self, records: Records) -> bool:
        if self.until is None or records.has(self.run.key):
            return records.has(self.run.key)
        return len(part_of(self.run, records).get("train_loss", [])) >= self.until


class MethodTuning:
    """Asks a search for points, says which runs they need, and tells their scores, until the budget is spent.

    A wave's trials are told together and in their order, so that what a search proposes does not depend on which run
    ended first. A search that prunes sees a wave after its first seed, its second, …; in a race each trial gets seeds,
    and halves of runs, as long as it has hope against the best; else all seeds are due at once.
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
        halves: bool = True,
    ) -> None:
        self.name, self.space, self.search = name, space, search
        self.seeds, self.aim, self.budget = list(seeds), aim, budget
        self.racing = Racing(aim, self.seeds, halves=halves) if race else None
        self.trials: list[Trial] = []  # told
        self.wave: list[Trial] = []
        self.legs: list[int] = []  # halves of runs that are due, of each trial of the wave

    def due(self, records: Records) -> list[Due]:
        """The runs that are missing now; none means that the budget is spent."""
        while self.wave or self._asks():
            if missing := [due for due in self._due() if not due.is_in(records)]:
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
        at_once = 2 if self.search.prunes else 2 * len(self.seeds)
        self.legs = [self.racing.next_leg(trial, 0) if self.racing else at_once for trial in self.wave]
        return True

    def _due(self) -> Iterator[Due]:
        for trial, legs in zip(self.wave, self.legs, strict=True):
            if not trial.pruned:
                runs = trial.runs(self.seeds)
                yield from (Due(trial, run) for run in runs[: legs // 2])
                if legs % 2:
                    yield Due(trial, runs[legs // 2], self.aim.half_of(trial.recipe))

    def _judge(self, records: Records) -> None:
        """Judge the wave by its runs so far; tell the search if that is all of them, else go on with what is next."""
        judged = self.racing.judged if self.racing else self._judged
        self.wave, self.legs = judged(self.wave, self.legs, records)
        if self.legs:
            return
        self.search.tell([trial.score.value if trial.finished else None for trial in self.wave])
        self.trials += self.wave
        self.wave = []

    def _judged(self, wave: list[Trial], legs: list[int], records: Records) -> tuple[list[Trial], list[int]]:
        """The wave with what its runs came to, and the legs that are due next; none if that was all."""
        done = legs[0] // 2
        more = done < len(self.seeds)
        for place, trial in enumerate(wave):
            if not trial.pruned:
                found = score([records.get(run.key) for run in trial.runs(self.seeds[:done])], self.aim, records)
                # a trial of which a run failed has no score to wait for
                drop = more and (found.value is None or self.search.hopeless(place, done, found.value))
                wave[place] = replace(trial, score=found, pruned=drop)
        return wave, [2 * done + 2] * len(wave) if more and not all(trial.pruned for trial in wave) else []
