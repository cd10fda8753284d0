"""What was compared on a study's test set before: it counts in the verdict, whatever the study file says now.

docs/evidence.md has the reasons, `analysis.family` the arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .. import __version__
from ..analysis import METRICS
from ..analysis.statistics.family import Asked, Family, Stage, family_of
from ..analysis.statistics.priority import ALL_METRICS
from ..analysis.statistics.sequential import Rounds
from ..store import Compared, Comparison, MethodDocument, Opened, StudyDocument, now
from ..store.documents import aim_of, same_method
from ..store.recipes import identity
from .collected import Run


@dataclass(frozen=True)
class Before:
    """The comparisons that were looked at on the test set of `study`, in their order."""

    study: StudyDocument
    comparisons: tuple[Comparison, ...]
    in_rounds: bool

    @classmethod
    def of(cls, study: StudyDocument, opened: Opened | None, rounds: Rounds | None) -> Before:
        compared = opened.compared_for(study) if opened else ()
        return cls(study, compared, rounds is not None)

    @cached_property
    def names(self) -> dict[str, str]:
        """Of all methods that were or are compared, by recipe; those of the study first."""
        names = {identity(method.recipe): method.name for method in self.study.methods}
        for method in self._compared:
            known = next((m.name for m in self.study.methods if same_method(m, method)), None)
            name = known or method.name
            while not known and name in names.values() and identity(method.recipe) not in names:
                name += " (before)"
            names.setdefault(identity(method.recipe), name)
        return names

    @cached_property
    def keys(self) -> dict[str, dict[int, str]]:
        """Of the runs that were looked at, by method and seed."""
        keys: dict[str, dict[int, str]] = {}
        for method in self._compared:
            keys.setdefault(self.names[identity(method.recipe)], {}).update(method.runs)
        return keys

    @property
    def gone(self) -> tuple[str, ...]:
        """Methods that are not in the study any more."""
        there = {method.name for method in self.study.methods}
        return tuple(name for name in self.names.values() if name not in there)

    @property
    def seeds_back(self) -> tuple[int, ...]:
        """Seeds that are not in the study any more; rounds have a plan of their seeds, and none is left out."""
        there = {seed for method in self.study.methods for seed in self.keys.get(method.name, {})}
        return () if self.in_rounds else tuple(sorted(there - {*self.study.seeds}))

    def runs_of(self, method: MethodDocument) -> list[tuple[int, str | None]]:
        """(seed, key) of all runs that count, the study's own first; None for a run that nobody has asked for."""
        before = self.keys.get(method.name, {})
        own = zip(self.study.seeds, method.keys, strict=True)
        return [*own, *((seed, before.get(seed)) for seed in self.seeds_back)]

    def comparison(self, runs: Mapping[str, Sequence[Run]]) -> Comparison | None:
        """What is looked at now; None where nothing can be compared."""
        compared = {
            m.name: Compared(m.name, m.recipe, {run.seed: run.key for run in runs[m.name] if run.finished})
            for m in self.study.methods
        }
        baseline = compared.pop(self.study.baseline)
        others = tuple(method for method in compared.values() if method.runs)
        if not (baseline.runs and others):
            return None
        return Comparison(now(), __version__, self.study.metric, self.study.priority, baseline, others)

    def family(self, latest: Comparison) -> Family:
        """What counts in the verdict on the `latest` comparison."""
        seeds = {seed: place for place, seed in enumerate((*self.study.seeds, *self.seeds_back))}
        asked = [self._asked(comparison, seeds) for comparison in (*self.comparisons, latest)]
        metrics = len(METRICS) + any(comparison.priority is not None for comparison in (*self.comparisons, latest))
        family = _in_rounds(asked) if self.in_rounds else family_of(asked, metrics)
        gone = tuple(name for name in self.gone if name in family.own[-1].pairs)
        return Family(family.stages, family.left, gone, tuple(self._notes(asked, metrics)))

    @property
    def _compared(self) -> list[Compared]:
        return [method for c in self.comparisons for method in (c.baseline, *c.methods)]

    def _asked(self, comparison: Comparison, seeds: Mapping[int, int]) -> Asked:
        scores = {
            self.names[identity(method.recipe)]: frozenset(seeds[s] for s in method.runs if s in seeds)
            for method in (comparison.baseline, *comparison.methods)
        }
        return Asked(aim_of(comparison), self.names[identity(comparison.baseline.recipe)], scores)

    def _notes(self, asked: Sequence[Asked], metrics: int) -> list[str]:
        notes, latest = [], asked[-1]
        if back := self.seeds_back:
            one, listed = len(back) == 1, ", ".join(map(str, back))
            notes.append(
                f"{'1 seed that was' if one else f'{len(back)} seeds that were'} compared before ({listed}) "
                f"{'is' if one else 'are'} not in this study any more; {'its' if one else 'their'} runs still count."
            )
        alike = [a for a in asked if a.baseline == latest.baseline]
        if alike[0].metric != latest.metric:
            was = self.comparisons[asked.index(alike[0])]
            before = "another priority" if was.priority else _label(was.metric)
            notes.append(
                f"The test set was first opened for {before}; {_label(self.study.metric)} was chosen when the results "
                f"were known, and is judged as one of {metrics} metrics."
            )
        if any(latest.baseline in a.scores for a in asked[: asked.index(alike[0])]):
            notes.append(
                f"The test set was first opened with {asked[0].baseline} as the baseline; {latest.baseline} was chosen "
                f"when the results were known, and is judged as one of {len(self.names)}."
            )
        return notes


def _in_rounds(asked: Sequence[Asked]) -> Family:
    """Rounds have looks of their own, which pay for their seeds; nothing is left for another metric or baseline."""
    first, latest = asked[0], asked[-1]
    places = {name: frozenset().union(*(a.scores.get(name, ()) for a in asked)) for a in asked for name in a.scores}
    pairs = {name: some for name, some in places.items() if some and name != latest.baseline}
    same = (first.metric, first.baseline) == (latest.metric, latest.baseline)
    return Family((Stage(pairs, share=float(same), own=True),), left=float(same))


def _label(metric: str) -> str:
    return ALL_METRICS[metric].label
