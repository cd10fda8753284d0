"""`Axis`: the values of one dial that a search may try, and what lies between and beyond them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core import EquipoiseError, checks, did_you_mean
from ...core.words import shown

DIGITS = 3  # significant digits of a value that a search makes up: a finer one would be noise, and hard to read
MOST_VALUES = 1_000
POINTS = 3  # coarse values of a range that is given by its ends alone

# name -> the coordinate in which equal steps are equally large, and its inverse
SCALES: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "linear": (float, float),
    "log": (math.log, math.exp),
    "towards_one": (lambda x: -math.log(1 - x), lambda p: 1 - math.exp(-p)),  # 0.9, 0.99, 0.999, …
}
CHOICE = "choice"
_KEYS = ("values", "scale", "low", "high")


@dataclass(frozen=True)
class Axis:
    """Coarse `values` of a dial, in rising order; `low` and `high` are limits that no search may cross.

    Steps are equal on `scale`: "linear", "log", or "towards_one" (equal steps of log(1 - x), for values such as
    0.9, 0.99, 0.999). Values that are not numbers, or whose scale is "choice", have nothing between or beyond them.

    >>> gamma = Axis((0.5, 1.0, 2.0), "log")
    >>> gamma.between(0.5, 1.0), gamma.beyond(1.0, 2.0)
    (0.707, 4.0)
    """

    values: tuple[Any, ...]
    scale: str = "linear"
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not all(isinstance(value, int | float | str) for value in self.values):
            raise EquipoiseError(f"values must be numbers, texts, true or false, not {shown(list(self.values))}")
        if len(self.values) > MOST_VALUES:
            raise EquipoiseError(f"values must be at most {MOST_VALUES:,}, not {len(self.values):,}")
        if any(isinstance(value, bool | str) for value in self.values):
            object.__setattr__(self, "scale", CHOICE)
        if self.scale not in (*SCALES, CHOICE):
            raise EquipoiseError(f"no scale is named {shown(self.scale)}.{did_you_mean(self.scale, [*SCALES, CHOICE])}")
        if not self.values or len(set(self.values)) != len(self.values):
            raise EquipoiseError(f"values must be at least one, and no two the same, not {shown(list(self.values))}")
        if self.ordered:
            for value in self.values:
                self._check(value)
            object.__setattr__(self, "values", tuple(sorted(self.values)))

    def _check(self, value: float) -> None:
        checks.number("a value", value)
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise EquipoiseError(f"{shown(value)} lies outside of low = {self.low} and high = {self.high}")
        if self.scale == "log" and value <= 0:
            raise EquipoiseError(f'scale = "log" needs values above 0, not {value!r}')
        if self.scale == "towards_one" and value >= 1:
            raise EquipoiseError(f'scale = "towards_one" needs values below 1, not {value!r}')

    @property
    def ordered(self) -> bool:
        return self.scale != CHOICE

    @property
    def whole(self) -> bool:
        """Whether only whole numbers may be tried."""
        return self.ordered and all(isinstance(value, int) for value in self.values)

    @property
    def size(self) -> float:
        """How many different values a search can find."""
        if not self.ordered:
            return len(self.values)
        low, high = self.reach
        return high - low + 1 if self.whole else math.inf

    @property
    def reach(self) -> tuple[float, float]:
        """The range a sampler draws from: the values, a step wider at both ends where the limits allow it."""
        low, high = self.values[0], self.values[-1]
        if len(self.values) > 1:
            low, high = self.beyond(self.values[1], low), self.beyond(self.values[-2], high)
        return self.values[0] if low is None else low, self.values[-1] if high is None else high

    def position(self, value: float) -> float:
        return SCALES[self.scale][0](value)

    def between(self, a: float, b: float) -> float | None:
        """The value half-way from a to b; None where rounding leaves none, or there is none."""
        if not self.ordered:
            return None
        middle = self._at((self.position(a) + self.position(b)) / 2)
        return middle if min(a, b) < middle < max(a, b) else None

    def beyond(self, a: float, b: float) -> float | None:
        """The value as far past b as b is from a; None past a limit."""
        if not self.ordered:
            return None
        try:
            value = self._at(2 * self.position(b) - self.position(a))
            self._check(value)
        except (ValueError, OverflowError):
            return None
        return value if value not in (a, b) else None

    def tidy(self, value: float) -> float:
        """The coarse value that `value` is, but for rounding; else `value` to a few significant digits."""
        return next((v for v in self.values if math.isclose(v, value, rel_tol=1e-9)), self._at(self.position(value)))

    def including(self, value: Any) -> Axis:
        """The same with `value` among its values, where it can be."""
        try:
            return replace(self, values=tuple({*self.values, value})) if self.ordered else self
        except ValueError:
            return self

    def in_order(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """Values of this axis as a line: rising, or as they were given."""
        return tuple(sorted(values) if self.ordered else (v for v in self.values if v in set(values)))

    def nearest(self, value: Any) -> Any:
        """The coarse value nearest to `value`; the middle one where the recipe has none (ema, say)."""
        if value is None and self.ordered:
            return self.values[len(self.values) // 2]
        if not self.ordered:
            return value if value in self.values else self.values[0]
        return min(self.values, key=lambda v: (abs(v - value), v))

    def _at(self, position: float) -> float:
        value = SCALES[self.scale][1](position)
        if self.whole:
            return round(value)
        if self.scale == "linear":
            largest = max(abs(v) for v in self.values) or 1.0
            return round(value, DIGITS - math.floor(math.log10(largest)))
        if self.scale == "towards_one":
            return round(1 - _significant(1 - value), 15)
        return _significant(value)


def _significant(value: float) -> float:
    """`value` to as few digits, at most `DIGITS`, as change it by no more than 2 in a thousand: 0.9986 is 1.0."""
    rounded = (float(f"{value:.{digits}g}") for digits in range(1, DIGITS))
    return next((r for r in rounded if math.isclose(r, value, rel_tol=2e-3)), float(f"{value:.{DIGITS}g}"))


def around(value: float) -> Axis:
    """Half a decade to both sides of `value`: the steps of the loss functions paper for learning rate and decay.

    >>> around(0.1).values
    (0.0316, 0.1, 0.316)
    """
    return Axis((_significant(value / math.sqrt(10)), value, _significant(value * math.sqrt(10))), "log")


def read_axis(given: Any, like: Axis | None = None, *, floats: bool = False) -> Axis:
    """An axis as a study writes it: a list of values, or a table of values, scale, low and high.

    A range without values gets three, evenly on the scale. What is not said is as in `like`; `floats` makes 1 mean 1.0.

    >>> read_axis({"low": 0.01, "high": 1.0, "scale": "log"}).values
    (0.01, 0.1, 1.0)
    """
    table = dict(given) if isinstance(given, Mapping) else {"values": given}
    for key in table.keys() - set(_KEYS):
        raise EquipoiseError(f"no key is named {shown(key)}.{did_you_mean(key, _KEYS)}")
    base = {"scale": like.scale, "low": like.low, "high": like.high} if like else {}
    table = {**base, **table}
    for end in ("low", "high"):
        if table.get(end) is not None:
            checks.number(end, table[end])
    if "values" not in table:
        if not isinstance(given, Mapping) or not {"low", "high"} <= given.keys():
            raise EquipoiseError("say which values to try: a list such as [0.5, 1.0, 2.0], or low and high")
        table["values"] = _across(**table)
    values = table.pop("values")
    if not isinstance(values, list | tuple):
        raise EquipoiseError(f"values must be a list such as [0.5, 1.0, 2.0], not {shown(values)}")
    return Axis(tuple(float(v) if floats and type(v) is int else v for v in values), **table)


def _across(low: float, high: float, scale: str = "linear") -> list[float]:
    """`POINTS` values from low to high, evenly on the scale."""
    ends = Axis((low, high), scale)
    first, last = (ends.position(v) for v in ends.values)
    inner = [ends._at(first + (last - first) * i / (POINTS - 1)) for i in range(1, POINTS - 1)]
    return list(dict.fromkeys((low, *inner, high)))
