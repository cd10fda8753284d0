"""`Description`: all that is known of a trained model apart from its weights. Plain data; model.json has it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core import EquipoiseError
from ..core.words import counted
from ..store.filled import filled
from ..store.shapes import RecipeTable, whole
from .calibration import Calibration
from .preprocessing import Preprocessing
from .promise import Promise

SCHEMA = 1


@dataclass(frozen=True)
class Score:
    """A test score: the mean over `n` trainings with its 95 % interval, which a single training does not have."""

    label: str
    n: int
    mean: float
    low: float | None = None
    high: float | None = None
    unit: str = ""

    @classmethod
    def of(cls, label: str, unit: str, n: int, mean: float, low: float, high: float) -> Score:
        """With nothing in place of what is not finite."""
        known = math.isfinite(low) and math.isfinite(high)
        return cls(label, n, mean, low if known else None, high if known else None, unit)

    def __str__(self) -> str:
        scale, unit, digits = (100, " %", 1) if self.unit == "percent" else (1, "", 3)
        mean = f"{scale * self.mean:.{digits}f}{unit}"
        if self.low is None or self.high is None:
            return f"{mean} ({self.n} training, so without an interval)" if self.n == 1 else f"{mean} (n = {self.n})"
        low, high = (max(0, self.low), min(1, self.high)) if unit else (self.low, self.high)
        interval = f"{scale * low:.{digits}f} to {scale * high:.{digits}f}{unit}"
        return f"{mean} (95 % interval {interval}; n = {counted(self.n, 'training')})"


@dataclass(frozen=True)
class Description:
    """How a model was trained, how images become its input and its outputs probabilities, and how good it is.

    `recipe` has the folder and file names of data and weights without their places; `fitted` has what a correction
    after training chose on validation data. `content` tells the data set from any other (None where it comes with a
    package), `fingerprint` the images that were drawn from it. `licence` is that of the weights that training began
    from, None where it began from nothing. `promise` says what to expect of new images, where `compare` made the model.
    A network that `equipoise improve` corrected comes from no study.
    """

    study: str
    question: str
    method: str
    seed: int
    metric: str
    verdict: str
    class_names: tuple[str, ...]
    class_counts: tuple[int, ...]
    preprocessing: Preprocessing
    calibration: Calibration
    recipe: RecipeTable
    fitted: dict[str, float]
    scores: dict[str, Score]
    recalls: tuple[Score, ...]
    parameters: int
    versions: dict[str, str]
    fingerprint: str
    content: str | None
    licence: str | None
    promise: Promise | None = None

    def __post_init__(self) -> None:
        if len(self.class_counts) != len(self.class_names):
            raise ValueError(f"{len(self.class_names)} classes have {len(self.class_counts)} class counts")
        if not all(count > 0 for count in self.class_counts):
            raise ValueError("a class has no training images")

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Description:
        """What `to_dict` gave; a mistake in it is a ValueError or a KeyError."""
        if whole(plain["schema"]) > SCHEMA:
            raise EquipoiseError(
                f"the model was saved by a newer version of equipoise (schema {plain['schema']}; this one reads up to "
                f"{SCHEMA}): upgrade equipoise"
            )
        return filled(cls, {"promise": None, **plain}, strict=True)  # older models have none
