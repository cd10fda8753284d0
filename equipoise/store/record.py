"""`Record`: one finished or failed run, frozen, plain data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..core import EquipoiseError

SCHEMA = 1


@dataclass(frozen=True)
class Record:
    """What came out of one recipe.

    `metrics` and `curves` are of the training and validation data; the test set's outputs lie beside the record and
    are read by the report alone.
    """

    key: str
    recipe: dict[str, Any]
    state: str  # "finished" or "failed"
    class_names: tuple[str, ...]
    class_counts: tuple[int, ...]
    data: str  # fingerprint of the images drawn
    parameters: int
    seconds: float
    ended: str  # ISO time, UTC
    versions: dict[str, str]
    device: str
    metrics: dict[str, float] = field(default_factory=dict)
    curves: dict[str, list[float]] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)  # seconds by what was done in them, and images trained on
    trained_by: str | None = None  # the key whose trained network a post-hoc method corrected
    error: str | None = None
    failed_step: int | None = None
    schema: int = SCHEMA

    @property
    def finished(self) -> bool:
        return self.state == "finished"

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Record:
        plain = json.loads(text)
        check_schema(plain.get("schema"), "a record")
        known = {f.name for f in fields(cls)}
        plain = {name: value for name, value in plain.items() if name in known}
        plain["class_names"] = tuple(plain["class_names"])
        plain["class_counts"] = tuple(plain["class_counts"])
        return cls(**plain)


def check_schema(schema: Any, what: str) -> None:
    """Refuse what a newer version wrote, rather than misread it."""
    if not isinstance(schema, int) or schema > SCHEMA:
        raise EquipoiseError(
            f"{what} was written by a newer version of equipoise (schema {schema}; this one reads up to {SCHEMA}): "
            "upgrade equipoise, or choose another folder with --out"
        )
