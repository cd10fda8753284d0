"""`Record`: one finished or failed run, frozen, plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import partial
from typing import Any

from ..core import EquipoiseError
from .shapes import items, key, maybe, number, recipe, table, text, whole

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
    notes: tuple[str, ...] = ()  # what happened to it that a reader should know
    files: dict[str, str] = field(default_factory=dict, compare=False)  # checksums of those beside it; the store's
    schema: int = SCHEMA

    @property
    def finished(self) -> bool:
        return self.state == "finished"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Record:
        """What `to_dict` gave; names it does not know are passed over, other mistakes are a ValueError or KeyError."""
        check_schema(plain.get("schema"), "a record")
        given = {f.name: plain[f.name] for f in fields(cls) if f.name in plain or f.name in _REQUIRED}
        return cls(**{name: _READERS[name](value) if name in _READERS else value for name, value in given.items()})


def _state(value: Any) -> str:
    if value not in ("finished", "failed"):
        raise ValueError(f"its state is {value!r}")
    return str(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "key": key,
    "recipe": recipe,
    "state": _state,
    "class_names": partial(items, read=text),
    "class_counts": partial(items, read=whole),
    "data": text,
    "parameters": whole,
    "seconds": number,
    "ended": text,
    "device": text,
    "versions": partial(table, read=text),
    "metrics": partial(table, read=maybe(number)),
    "curves": partial(table, read=lambda curve: list(items(curve, maybe(number)))),
    "timing": partial(table, read=number),
    "trained_by": maybe(key),
    "error": maybe(text),
    "failed_step": maybe(whole),
    "schema": whole,
    "files": partial(table, read=text),
    "notes": partial(items, read=text),
}
_REQUIRED = {f.name for f in fields(Record) if f.default is MISSING and f.default_factory is MISSING}


def check_schema(schema: Any, what: str) -> None:
    """Refuse what a newer version wrote, rather than misread it; a ValueError where it is no schema at all."""
    if whole(schema) > SCHEMA:
        raise EquipoiseError(
            f"{what} was written by a newer version of equipoise (schema {schema}; this one reads up to {SCHEMA}): "
            "upgrade equipoise, or choose another folder with --out"
        )
