"""`Racing`: the trials of a method as racers, by what the store has of their runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from ...store import Store
from ...store.underway import waiting_curves
from ...train import Recipe
from .aim import Aim
from .race import Racer, hoped_end, hopeless, is_blind, who_goes_on
from .records import Records
from .trial import Trial, score

HALF_A_POINT = 0.005  # what a race may lose: a trial that is at most so much better than the leader is not worth runs


class Racing:
    """Judges a wave whenever what was due is done. A trial's way is counted in legs: halves of its runs, seed by seed.

    Everything follows from scores and curves in the store, so a race that was interrupted goes on as it would have.
    Runs are trained in one go until trials can be judged, and without `halves` always.
    """

    def __init__(self, aim: Aim, seeds: Sequence[int], *, halves: bool) -> None:
        self.aim, self.seeds, self.halves = aim, list(seeds), halves
        self.sign = 1.0 if aim.entry.higher_is_better else -1.0
        self.margin = HALF_A_POINT if aim.entry.unit == "percent" else 0.0
        self.is_blind = True
        self.racers: dict[int, Racer] = {}  # by the number of the trial; those of earlier waves too
        self.parts: dict[int, list[float]] = {}  # curves of runs that wait half-way, by the same
        self.curves: list[list[float]] = []  # of runs that are done

    def next_leg(self, trial: Trial, legs: int) -> int:
        """The legs that are due after so many: one more where a run can be judged half-way, else a whole run."""
        return legs + 1 if self.halves and not self.is_blind and self.aim.half_of(trial.recipe) else legs + 2

    def judged(self, wave: list[Trial], legs: list[int], records: Records) -> tuple[list[Trial], list[int]]:
        """The wave with what its runs came to, ended where there is no hope, and the legs due next; none if no more."""
        wave = [self._after(trial, count, records) for trial, count in zip(wave, legs, strict=True)]
        self._hope()
        racers = list(self.racers.values())
        self.is_blind = is_blind(racers, len(self.seeds))
        ends = dict(zip(self.racers, hopeless(racers, len(self.seeds), self.margin), strict=True))
        wave = [replace(trial, pruned=trial.pruned or ends[trial.number]) for trial in wave]
        going = [t.number for t in wave if not t.pruned and len(self.racers[t.number].means) < len(self.seeds)]
        if not going:
            return wave, []
        others = [racer for number, racer in self.racers.items() if number not in going]
        next_ones = who_goes_on([self.racers[number] for number in going], others, len(self.seeds))
        gets = dict(zip(going, next_ones, strict=True))
        return wave, [
            self.next_leg(t, count) if gets.get(t.number) else count for t, count in zip(wave, legs, strict=True)
        ]

    def _after(self, trial: Trial, legs: int, records: Records) -> Trial:
        """The trial, and its racer, after so many legs; it is over where a run failed."""
        racer = self.racers.setdefault(trial.number, Racer())
        if trial.pruned or racer.legs == legs:
            return trial
        runs = trial.runs(self.seeds)[: (legs + 1) // 2]
        done = [records.get(run.key) for run in runs if records.has(run.key)]
        is_half = legs % 2 == 1
        if is_half and all(run.finished for run in done):
            part = self.parts[trial.number] = self._part(runs[-1], records)
            self.racers[trial.number] = replace(racer, first=racer.first if racer.means else max(part))
            return trial
        self.parts.pop(trial.number, None)
        found = score(done, self.aim, records)
        if found.value is None:
            return replace(trial, score=found, pruned=True)
        if self.aim.half_of(trial.recipe):
            self.curves.append(self._larger(self.aim.curve(done[-1], records)))
        value, scores = self.sign * found.value, tuple(self._larger(found.by_seed))
        first = value if legs == 2 and racer.hoped is None else racer.first
        self.racers[trial.number] = Racer(scores, (*racer.means, value), first=first)
        return replace(trial, score=found)

    def _hope(self) -> None:
        """What those that wait half-way may come to, by all runs that are done now."""
        for number, part in self.parts.items():
            racer = self.racers[number]
            hoped = (sum(racer.scores) + hoped_end(part, self.curves)) / (len(racer.scores) + 1)
            self.racers[number] = replace(racer, hoped=hoped)

    def _part(self, run: Recipe, records: Records) -> list[float]:
        """The curve of a run up to the epoch at which it is judged, whether it waits there or has gone on."""
        whole = (
            self.aim.curve(records.get(run.key), records)
            if records.has(run.key)
            else part_of(run, records)[f"valid_{self.aim.metric}"]
        )
        return self._larger(whole[: self.aim.half_of(run)])

    def _larger(self, values: Sequence[float]) -> list[float]:
        """Values of which larger ones are better."""
        return [self.sign * value for value in values]


def part_of(run: Recipe, records: Records) -> dict[str, list[float]]:
    """The curves of a run that waits half-way; only a store has such runs."""
    return waiting_curves(cast(Store, records), run.key)
