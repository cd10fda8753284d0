"""sensitivity.json: how validation scores depend on each dial that `equipoise tune` tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .filled import Filled


@dataclass(frozen=True)
class TriedValue:
    """A value of a dial with its scores; None where there is none.

    `marginal` is the best score with it, whatever the other dials were; `slice` the score with the other dials as
    chosen.
    """

    value: Any
    marginal: float | None
    slice: float | None
    trials: int


@dataclass(frozen=True)
class Dial:
    dial: str
    scale: str
    chosen: Any
    at_edge: bool
    points: tuple[TriedValue, ...]


@dataclass(frozen=True)
class TunedMethod:
    name: str
    best: float | None
    dials: tuple[Dial, ...]


@dataclass(frozen=True)
class Sensitivity(Filled):
    """Every dial of every method."""

    metric: str
    higher_is_better: bool
    methods: tuple[TunedMethod, ...]

    FILE = "sensitivity.json"
