"""convergence.json: which runs of a store are longer trainings, made to tell whether the others were long enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .filled import Filled, filled
from .shapes import Key


@dataclass(frozen=True)
class LongerRun:
    """A run of `method` with `longer` epochs instead of `epochs`."""

    method: str
    seed: int
    key: Key
    epochs: int
    longer: int


@dataclass(frozen=True)
class Convergence(Filled):
    """The longer runs of a study; where there are none, `reason` says why."""

    runs: tuple[LongerRun, ...] = ()
    reason: str = ""

    FILE = "convergence.json"

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Convergence:
        return filled(cls, plain, strict=True)
