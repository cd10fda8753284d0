"""The papers' search: a coarse grid; where the best is at an edge, the grid grows; then it gets denser around the best.

As in Kornblith et al., appendix A (arXiv:2010.16402): around an optimal learning rate of 10^-1, found among steps of
half a decade, the finer grid has 10^-0.5, 10^-0.75, 10^-1, 10^-1.25 and 10^-1.5.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .axis import Axis
from .space import Point

Values = tuple[Any, ...]


class GridSearch:
    """Proposes points in waves: all of a wave are scored before the next one.

    1. The coarse grid: every combination of the axes' values.
    2. While the best value of some axis is the largest or smallest so far, one more step on that side, with every
       combination of the others.
    3. Else five values of each axis, the best, its neighbours and what is half-way to them; then 2 again.

    Of a wave, the points nearest to the best (at first, to the start) come first. One that does not fit in what is left
    of the budget gets half of that, so that edges and density have their turn however small the budget is.
    Which points are proposed depends on nothing but the scores.
    """

    prunes = False

    def __init__(self, axes: Mapping[str, Axis], start: Point, budget: int, *, higher_is_better: bool) -> None:
        self.axes, self.budget = dict(axes), budget
        self.sign = 1 if higher_is_better else -1
        self.lines: dict[str, Values] = {dial: axis.values for dial, axis in self.axes.items()}
        self.start = self._values(start)
        self.tried: dict[Values, float] = {}  # with their merit: larger is better
        self.wave: list[Values] = []

    def ask(self) -> list[Point]:
        """The next wave; none when the budget is spent, or nothing is left to try."""
        left = self.budget - len(self.tried)
        if left <= 0:
            return []
        wave = self._untried() if not self.tried else next(self._waves(), [])
        self.wave = wave if len(wave) <= left else wave[: (left + 1) // 2]
        return [dict(zip(self.axes, values, strict=True)) for values in self.wave]

    def tell(self, values: Sequence[float | None]) -> None:
        """The scores of the wave; None for a trial that failed."""
        for point, value in zip(self.wave, values, strict=True):
            self.tried[point] = float("-inf") if value is None else self.sign * value

    def hopeless(self, place: int, runs: int, value: float) -> bool:
        """A grid is scored in full."""
        return False

    @property
    def best(self) -> Values:
        """The first of the best points so far; the start, if all have failed."""
        found = max(self.tried, key=self.tried.__getitem__, default=self.start)
        return found if self.tried.get(found, float("-inf")) > float("-inf") else self.start

    def _waves(self) -> Iterator[list[Values]]:
        """What to try next, and where all of that has been tried, what to try instead."""
        if new := self._grow(at_best_only=True):
            yield from filter(None, [self._untried(new)])
        while self._thicken():
            yield from filter(None, [self._untried()])
        while self._grow(at_best_only=False):  # whole numbers and choices have nothing between them
            yield from filter(None, [self._untried()])

    def _grow(self, *, at_best_only: bool) -> set[tuple[int, Any]]:
        """Add values past the ends of the lines, or only where the end is the best; which, and of which axis."""
        new: set[tuple[int, Any]] = set()
        for place, (dial, line) in enumerate(self.lines.items()):
            axis, grown = self.axes[dial], set(line)
            if not axis.ordered:
                grown |= set(() if at_best_only else axis.values)
            elif len(line) > 1:
                for near, end in ((line[1], line[0]), (line[-2], line[-1])):
                    value = axis.beyond(near, end)
                    if value is not None and (not at_best_only or self.best[place] == end):
                        grown.add(value)
            new |= {(place, value) for value in grown.difference(line)}
            self.lines[dial] = axis.in_order(grown)
        return new

    def _thicken(self) -> bool:
        """Let each line be the best value, its neighbours, and the values half-way to them; whether one changed."""
        before = dict(self.lines)
        for place, (dial, line) in enumerate(before.items()):
            axis, at = self.axes[dial], line.index(self.best[place])
            near = line[max(0, at - 1) : at + 2] if axis.ordered else line[at : at + 1]
            middles = {axis.between(a, b) for a, b in itertools.pairwise(near)} - {None}
            self.lines[dial] = axis.in_order({*near, *middles})
        return self.lines != before

    def _untried(self, new: set[tuple[int, Any]] | None = None) -> list[Values]:
        """Combinations of the lines that have not been tried, those nearest to the best first.

        With `new`, only those that have one of these values at its axis.
        """
        at = [line.index(value) for line, value in zip(self.lines.values(), self.best, strict=True)]
        found = []
        for point in itertools.product(*(enumerate(line) for line in self.lines.values())):
            values = tuple(value for _, value in point)
            if values not in self.tried and (new is None or not new.isdisjoint(enumerate(values))):
                steps = sum(abs(index - home) for (index, _), home in zip(point, at, strict=True))
                found.append((steps, values))
        return [values for _, values in sorted(found, key=lambda each: each[0])]

    def _values(self, point: Point) -> Values:
        return tuple(point[dial] for dial in self.axes)
