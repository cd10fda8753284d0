"""`Record`: one finished or failed run, frozen, plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from ..core import EquipoiseError
from .filled import Filled
from .shapes import Key, RecipeTable, items, maybe, number, table, whole

SCHEMA = 1


def _state(value: Any) -> str:
    if value not in ("finished", "failed"):
        raise ValueError(f"its state is {value!r}")
    return str(value)


def _numbers(value: Any) -> dict[str, float | None]:
    return table(value, maybe(number))


def _curves(value: Any) -> dict[str, list[float | None]]:
    return table(value, lambda curve: list(items(curve, maybe(number))))


@dataclass(frozen=True)
class Record(Filled):
    """What came out of one recipe.

    `metrics` and `curves` are of the training and validation data; the test set's outputs lie beside the record and
    are read by the report alone.
    """

    key: Key
    recipe: RecipeTable
    state: Annotated[str, _state]  # "finished" or "failed"
    class_names: tuple[str, ...]
    class_counts: tuple[int, ...]
    data: str  # fingerprint of the images drawn
    parameters: int
    seconds: float
    ended: str  # ISO time, UTC
    versions: dict[str, str]
    device: str
    metrics: Annotated[dict[str, float], _numbers] = field(default_factory=dict)
    curves: Annotated[dict[str, list[float]], _curves] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)  # seconds by what was done in them, and images trained on
    trained_by: Key | None = None  # the key whose trained network a post-hoc method corrected
    error: str | None = None
    failed_step: int | None = None
    notes: tuple[str, ...] = ()  # what happened to it that a reader should know
    files: dict[str, str] = field(default_factory=dict, compare=False)  # checksums of those beside it; the store's
    schema: int = SCHEMA

    @property
    def finished(self) -> bool:
        return self.state == "finished"

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """What `to_dict` gave; names it does not know are passed over, other mistakes are a ValueError."""
        check_schema(plain.get("schema"), "a record")
        return super().from_dict(plain)


def check_schema(schema: Any, what: str) -> None:
    """Refuse what a newer version wrote, rather than misread it; a ValueError where it is no schema at all."""
    if whole(schema) > SCHEMA:
        raise EquipoiseError(
            f"{what} was written by a newer version of equipoise (schema {schema}; this one reads up to {SCHEMA}): "
            "upgrade equipoise, or choose another folder with --out"
        )
